// What all views share: the models, the one that is chosen, and the server's limits.

import { get } from "./api.js";

export const store = {
  models: [],
  model: null,
  limits: { max_texts: 100, max_text_bytes: 100_000, max_body_bytes: 1_000_000, timeout_ms: 30_000 },
};

export async function load() {
  const [models, limits] = await Promise.all([get("v1/models"), get("v1/limits")]);
  store.models = models.models ?? [];
  store.limits = { ...store.limits, ...limits };
  store.model ??= store.models[0] ?? null;
}

// Chooses a model by name; false if there is no such model.
export function choose(name) {
  const found = store.models.find((model) => model.name === name);
  if (found) store.model = found;
  return found !== undefined;
}

// The name to send: nothing where there is no choice.
export function modelName() {
  return store.models.length > 1 ? (store.model?.name ?? null) : null;
}

// Whether answers have probabilities; where they do not, scores stand in for them.
export function hasProbabilities() {
  return store.model?.has_probabilities ?? false;
}
