"""Threads, forks, workers, signals, pickles."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest
from conftest import QUICK

import elias_xmc

TEXTS = ["ripe red apple", "fast green car", "loud blue piano"] * 50


def answers_of(model):
    return model.predict(TEXTS, k=3)


def answers_at(path):
    return elias_xmc.load(path).predict(TEXTS, k=3)


def test_a_pickle_is_the_path(model, model_path):
    content = pickle.dumps(model)
    assert len(content) < 1000
    assert pickle.loads(content).path == os.path.abspath(model_path)


def in_a_forked_child(work) -> bytes:
    """What `work` returns in a child, within ten seconds."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        signal.alarm(10)
        try:
            return pipe.read()
        finally:
            signal.alarm(0)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_answers_after_its_parent_trained_and_answered(data, model, memory_model):
    trained = elias_xmc.train(*data, **QUICK)
    for one in (trained, memory_model, model):
        expected = repr(answers_of(one)).encode()
        assert in_a_forked_child(lambda: answers_of(one)) == expected
    # The child can train, explain, measure and fork again, too.
    assert in_a_forked_child(lambda: elias_xmc.train(*data, **QUICK).n_labels) == b"8"
    assert in_a_forked_child(lambda: model.evaluate(*data)["n_points"]) == b"120"
    assert in_a_forked_child(lambda: in_a_forked_child(lambda: len(answers_of(model)))) == b"b'150'"


@pytest.mark.parametrize("method", [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()])
@pytest.mark.filterwarnings("ignore:This process")
def test_workers_of_multiprocessing(method, model, model_path):
    expected = answers_of(model)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(answers_of, [model, model]).get(60)
        assert found == [expected, expected]
        assert pool.map_async(answers_at, [model_path]).get(60) == [expected]


def test_workers_of_joblib(model):
    joblib = pytest.importorskip("joblib")
    expected = answers_of(model)
    for backend in ("loky", "threading"):
        found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(answers_of)(model) for _ in range(3))
        assert found == [expected] * 3


def test_threads_share_a_model(model):
    expected = answers_of(model)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: answers_of(model), range(8))) == [expected] * 8


def test_other_threads_run_while_a_training_does(data):
    """The lock of the interpreter is free: a counter counts meanwhile."""
    counted = 0
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        training = pool.submit(elias_xmc.train, *data, **{**QUICK, "stage2_epochs": 200})
        while not training.done():
            counted += 1
            time.sleep(0.001)
    assert counted > 5 and training.result().n_labels == 8


TRAINING = """
import sys
sys.path.insert(0, {tests!r})
from conftest import make_data
import elias_xmc
def say(event):
    if event["event"] == "epoch" and event["phase"] == "stage 2":
        print("epoch", flush=True)
settings = dict(stage1_epochs=2, stage2_epochs={epochs}, encoder_dim=32, final_score_kind="product", train_batch_size=16)
try:
    model = elias_xmc.train(*make_data(120), out={out!r}, progress=say, checkpoint_every=0.05, resume={resume}, **settings)
    print("trained", model.predict("red apple", k=3))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def start(out, epochs, resume):
    code = TRAINING.format(tests=os.path.dirname(__file__), out=str(out), epochs=epochs, resume=resume)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_ends_a_training_and_it_can_be_resumed(tmp_path):
    out, epochs = tmp_path / "model", 300
    training = start(out, epochs, False)
    assert training.stdout.readline() == "epoch\n"
    training.send_signal(signal.SIGINT)
    rest, errors = training.communicate(timeout=60)
    assert "interrupted" in rest and training.returncode == 0, errors
    assert rest.count("epoch") < epochs - 1
    # Without resume, it says what to do.
    rest, errors = start(out, epochs, False).communicate(timeout=60)
    assert "resume=True continues it" in errors
    rest, errors = start(out, epochs, True).communicate(timeout=120)
    assert "trained" in rest, errors
    # The same model as without the interruption.
    whole, errors = start(tmp_path / "whole", epochs, False).communicate(timeout=120)
    assert rest.splitlines()[-1] == whole.splitlines()[-1]
    assert rest.count("epoch") < epochs


def test_ctrl_c_ends_a_prediction():
    code = f"""
import sys, threading, os, signal, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
from conftest import make_data, QUICK
import elias_xmc
model = elias_xmc.train(*make_data(60), **QUICK)
texts = ["ripe red apple in the road"] * 3_000_000
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    model.predict_csr(texts, threads=1)
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr
