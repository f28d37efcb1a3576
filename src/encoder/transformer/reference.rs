//! BERT in double precision, one text at a time: the reference for the fast version.

use std::collections::BTreeMap;

use super::shape::{LayerPart, Shape};
use crate::encoder::NamedTensor;

type TokenStates = Vec<Vec<f64>>;

/// A transformer over named tensors.
pub(super) struct Reference {
    pub(super) shape: Shape,
    pub(super) tensors: BTreeMap<String, Vec<f64>>,
}

impl Reference {
    pub(super) fn new(shape: &Shape, tensors: Vec<NamedTensor<'_>>) -> Self {
        let values = |t: &NamedTensor<'_>| t.values.to_vec().into_iter().map(f64::from).collect();
        let tensors = tensors.iter().map(|t| (t.name.to_owned(), values(t)));
        Reference {
            shape: shape.clone(),
            tensors: tensors.collect(),
        }
    }

    /// The states of a text's tokens after the last layer.
    pub(super) fn states(&self, tokens: &[u32]) -> TokenStates {
        let h = self.shape.hidden;
        let row = |name: &str, row: usize| {
            let name = format!("embeddings.{name}_embeddings.weight");
            self.tensors
                .get(&name)
                .map_or(vec![0.0; h], |t| t[row * h..][..h].to_vec())
        };
        let sum = |(position, &token): (usize, &u32)| {
            let parts = [
                row("word", token as usize),
                row("position", position),
                row("token_type", 0),
            ];
            (0..h)
                .map(|at| parts.iter().map(|part| part[at]).sum())
                .collect()
        };
        let sums: TokenStates = tokens.iter().enumerate().map(sum).collect();
        let mut x = self.norm("embeddings.LayerNorm", &sums);
        for layer_idx in 0..self.shape.n_layers {
            x = self.layer(layer_idx, &x);
        }
        x
    }

    fn layer(&self, layer_idx: usize, x: &TokenStates) -> TokenStates {
        let name = |part| self.shape.architecture.of_layer(layer_idx, part);
        let [q, k, v] =
            [LayerPart::Query, LayerPart::Key, LayerPart::Value].map(|p| self.linear(&name(p), x));
        let (n, size) = (x.len(), self.shape.hidden / self.shape.n_heads);
        let mut context = vec![vec![0.0; self.shape.hidden]; n];
        for head in 0..self.shape.n_heads {
            let columns = head * size..(head + 1) * size;
            for i in 0..n {
                let dot = |j: usize| columns.clone().map(|c| q[i][c] * k[j][c]).sum::<f64>();
                let weights: Vec<f64> = (0..n)
                    .map(|j| (dot(j) / (size as f64).sqrt()).exp())
                    .collect();
                let total: f64 = weights.iter().sum();
                for c in columns.clone() {
                    context[i][c] = (0..n).map(|j| weights[j] / total * v[j][c]).sum();
                }
            }
        }
        let attended = add(x, &self.linear(&name(LayerPart::Attention), &context));
        let middle = self.norm(&name(LayerPart::AttentionNorm), &attended);
        let mut inner = self.linear(&name(LayerPart::Inner), &middle);
        inner
            .iter_mut()
            .flatten()
            .for_each(|x| *x *= 0.5 * (1.0 + erf(*x / 2f64.sqrt())));
        let outer = add(&middle, &self.linear(&name(LayerPart::Outer), &inner));
        self.norm(&name(LayerPart::OutputNorm), &outer)
    }

    pub(super) fn linear(&self, name: &str, x: &TokenStates) -> TokenStates {
        let (weight, bias) = (
            &self.tensors[&format!("{name}.weight")],
            &self.tensors[&format!("{name}.bias")],
        );
        let one = |x: &Vec<f64>| {
            (weight.chunks_exact(x.len()).zip(bias))
                .map(|(w, b)| b + w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
                .collect()
        };
        x.iter().map(one).collect()
    }

    fn norm(&self, name: &str, x: &TokenStates) -> TokenStates {
        let (gamma, beta) = (
            &self.tensors[&format!("{name}.weight")],
            &self.tensors[&format!("{name}.bias")],
        );
        let one = |x: &Vec<f64>| {
            let n = x.len() as f64;
            let mean = x.iter().sum::<f64>() / n;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let root = (variance + f64::from(self.shape.epsilon)).sqrt();
            (x.iter().zip(gamma).zip(beta))
                .map(|((x, gamma), beta)| gamma * (x - mean) / root + beta)
                .collect()
        };
        x.iter().map(one).collect()
    }
}

fn add(x: &TokenStates, y: &TokenStates) -> TokenStates {
    let row = |(x, y): (&Vec<f64>, &Vec<f64>)| x.iter().zip(y).map(|(x, y)| x + y).collect();
    x.iter().zip(y).map(row).collect()
}

/// 2/√π e^{−x²} Σ 2ⁿx^{2n+1}/(1·3·…·(2n+1)): all terms have one sign, so none cancel.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}
