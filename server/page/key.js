// The keys, for asking and for correcting: asked for when the server wants one, kept for this tab only.

const KINDS = {
  read: {
    name: "elias-key",
    title: "This server needs a key",
    words: "Whoever runs the server has the key. It is kept in this browser tab only, and forgotten when you close the tab.",
  },
  learn: {
    name: "elias-learn-key",
    title: "Correcting answers needs a key",
    words: "It is another key than the one for asking: whoever runs the server has it. It is kept in this browser tab only, and forgotten when you close the tab.",
  },
};
let asking = null;
// For browsers that keep nothing between pages.
const kept = { read: "", learn: "" };

export function savedKey(kind = "read") {
  try {
    return sessionStorage.getItem(KINDS[kind].name) ?? kept[kind];
  } catch {
    return kept[kind];
  }
}

function save(kind, key) {
  kept[kind] = key;
  try {
    sessionStorage.setItem(KINDS[kind].name, key);
  } catch {
    // The key still holds until the page is loaded again.
  }
}

// Asks for a key after the server refused `tried`; true if there is now another one. Requests that are refused at
// the same time share one question.
export async function askForKey(kind, tried, signal) {
  if (savedKey(kind) !== tried) return true;
  asking ??= ask(kind, tried !== "").finally(() => {
    asking = null;
  });
  const given = await asking;
  signal?.throwIfAborted();
  return given;
}

function ask(kind, isWrong) {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key");
  const words = document.getElementById("key-problem");
  document.getElementById("key-title").textContent = KINDS[kind].title;
  document.getElementById("key-words").textContent = KINDS[kind].words;
  words.textContent = isWrong ? "The server did not accept this key." : "";
  input.value = "";
  return new Promise((done) => {
    const listeners = new AbortController();
    const close = (given) => {
      listeners.abort();
      dialog.close();
      done(given);
    };
    const { signal } = listeners;
    const form = document.getElementById("key-form");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const key = input.value.trim();
      // A header holds visible ASCII only.
      if (!/^[\x21-\x7e]+$/.test(key)) {
        words.textContent = key === "" ? "Type the key first." : "A key has only ASCII letters, digits and signs.";
        return;
      }
      save(kind, key);
      close(true);
    }, { signal });
    document.getElementById("key-cancel").addEventListener("click", () => close(false), { signal });
    dialog.addEventListener("cancel", () => close(false), { signal });
    dialog.showModal();
    input.focus();
  });
}
