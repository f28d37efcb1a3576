// The API key: asked for when the server wants one, kept for this tab only.

const NAME = "elias-key";
let asking = null;
// For browsers that keep nothing between pages.
let kept = "";

export function savedKey() {
  try {
    return sessionStorage.getItem(NAME) ?? kept;
  } catch {
    return kept;
  }
}

function save(key) {
  kept = key;
  try {
    sessionStorage.setItem(NAME, key);
  } catch {
    // The key still holds until the page is loaded again.
  }
}

// Asks for a key after the server refused `tried`; true if there is now another one. Requests that are refused at
// the same time share one question.
export async function askForKey(tried, signal) {
  if (savedKey() !== tried) return true;
  asking ??= ask(tried !== "").finally(() => {
    asking = null;
  });
  const given = await asking;
  signal?.throwIfAborted();
  return given;
}

function ask(isWrong) {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key");
  const words = document.getElementById("key-problem");
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
      save(key);
      close(true);
    }, { signal });
    document.getElementById("key-cancel").addEventListener("click", () => close(false), { signal });
    dialog.addEventListener("cancel", () => close(false), { signal });
    dialog.showModal();
    input.focus();
  });
}
