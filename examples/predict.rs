//! Predicts the labels of texts.
//!
//! `cargo run --release --example predict -- MODEL [TEXT]...`

#![allow(clippy::print_stdout)] // a program may print, the library may not

use elias::Predictor;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or("my-model".into());
    let mut texts: Vec<String> = arguments.collect();
    if texts.is_empty() {
        texts.push("terminal program that shows the weather".into());
    }

    let predictor = Predictor::load(model)?;
    let answers = predictor.predict_batch(&texts, 5)?;
    for (text, predictions) in texts.iter().zip(&answers) {
        println!("{text}");
        for prediction in predictions {
            match prediction.probability {
                Some(probability) => println!("  {probability:.2}  {}", prediction.label),
                None => println!("  {}", prediction.label),
            }
        }
    }
    Ok(())
}
