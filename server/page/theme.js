// Sets the colours before anything is drawn, so that a dark page does not flash white.
// Not a module, because modules run after the first drawing.
(() => {
  try {
    const chosen = localStorage.getItem("elias-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is switched off: the system's choice holds.
  }
})();
