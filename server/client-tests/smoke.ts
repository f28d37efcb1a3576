// The generated TypeScript client talks to a service: `node smoke.js URL`. It compiles only if the types are those that
// the requests and answers below have.

import createClient from "openapi-fetch";
import type { components, paths } from "./elias.js";

function check(isRight: boolean, found: unknown): asserts isRight {
  if (!isRight) throw new Error(JSON.stringify(found));
}

const names = (labels: components["schemas"]["LabelAnswer"][]) => labels.map((answer) => answer.label).sort().join(" ");
const client = createClient<paths>({ baseUrl: process.argv[2] });

const one = await client.POST("/v1/predict", { body: { text: "a small red apple", k: 2 } });
check(one.data !== undefined && "labels" in one.data && names(one.data.labels) === "apple red", one);
const probability: number | null = one.data.labels[0].probability;
check(probability === null || probability <= 1, one);

const many = await client.POST("/v1/predict", { body: { texts: ["a green car", "an old blue train"], k: 2 } });
check(many.data !== undefined && "results" in many.data, many);
check(many.data.results.map(({ labels }) => names(labels)).join() === "car green,blue train", many);

const refused = await client.POST("/v1/predict", { body: { text: "a", k: 1000 } });
check(refused.response.status === 422 && refused.error?.error_type === "bad_value", refused);

const why = await client.POST("/v1/explain", { body: { text: "a small red apple", k: 2 } });
check(why.data?.words.some(([word, weight]) => word === "apple" && Number(weight) > 0) === true, why);

const listed = await client.GET("/v1/labels", { params: { query: { query: "apple", sort: "name" } } });
check(listed.data?.labels.length === 1, listed);
const { id } = listed.data.labels[0];
const label = await client.GET("/v1/labels/{id}", { params: { path: { id } } });
check(label.data?.label === "apple" && label.data.examples[0].words.includes("apple"), label);

const unknown = await client.GET("/v1/labels/{id}", { params: { path: { id: 1000 } } });
check(unknown.response.status === 404 && unknown.error?.error_type === "not_found", unknown);
console.log("the TypeScript client works");
