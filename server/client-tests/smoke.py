"""The generated Python client talks to a service: `smoke.py URL`. Its types are those of the answers."""

import sys

from elias_client import Client
from elias_client.api.clusters import cluster, clusters
from elias_client.api.explain import explain
from elias_client.api.info import limits, models
from elias_client.api.labels import label, labels
from elias_client.api.predict import predict
from elias_client.models import (
    BatchLabels,
    BatchRequest,
    ErrorBody,
    Explanation,
    ExplainRequest,
    LabelResponse,
    LabelsSort,
    TextLabels,
    TextRequest,
)

client = Client(base_url=sys.argv[1])

one = predict.sync(client=client, body=TextRequest(text="a small red apple", k=2))
assert isinstance(one, TextLabels), one
assert {answer.label for answer in one.labels} == {"red", "apple"}, one
assert all(0 <= answer.id < 9 and answer.score > 0 for answer in one.labels), one

many = predict.sync(client=client, body=BatchRequest(texts=["a green car", "an old blue train"], k=2))
assert isinstance(many, BatchLabels), many
assert [{answer.label for answer in result.labels} for result in many.results] == [{"green", "car"}, {"blue", "train"}], many

refused = predict.sync(client=client, body=TextRequest(text="a", k=1000))
assert isinstance(refused, ErrorBody) and refused.error_type == "bad_value", refused

why = explain.sync(client=client, body=ExplainRequest(text="a small red apple", k=2))
assert isinstance(why, Explanation), why
assert ["red", "apple"] == sorted((word for word, _ in why.words if word in ("red", "apple")), reverse=True), why
assert [answer["label"] for answer in why.answers] == [answer.label for answer in one.labels], why

listed = labels.sync(client=client, query="apple", sort=LabelsSort.COUNT)
assert [entry.label for entry in listed.labels] == ["apple"], listed
known = label.sync(client=client, id=listed.labels[0].id)
assert isinstance(known, LabelResponse) and known.n_points == listed.labels[0].n_points, known
assert "apple" in known.examples[0].words, known

groups = clusters.sync(client=client)
assert groups.total == len(groups.clusters) > 0, groups
assert cluster.sync(client=client, id=0).n_labels == groups.clusters[0].n_labels

assert [model.name for model in models.sync(client=client).models] == ["default"]
assert limits.sync(client=client).max_texts > 0
print("the Python client works")
