// Hides and shows the series of a panel: the entries of its legend become buttons. Without JavaScript the legend
// is what it was.

/**
 * @param {Element} panel
 * @param {HTMLLIElement} entry
 */
function makeButton(panel, entry) {
  const button = document.createElement("button");
  button.type = "button";
  button.title = "Hide or show; with Shift: show this one alone";
  button.append(...entry.childNodes);
  entry.append(button);
  setShown(panel, entry, true);
  button.addEventListener("click", (event) => {
    if (event.shiftKey) {
      for (const other of entries(panel)) {
        setShown(panel, other, other === entry);
      }
    } else {
      setShown(panel, entry, button.getAttribute("aria-pressed") !== "true");
    }
  });
}

/** @param {Element} panel */
function entries(panel) {
  return /** @type {NodeListOf<HTMLLIElement>} */ (panel.querySelectorAll(".legend [data-series]"));
}

/**
 * @param {Element} panel
 * @param {HTMLLIElement} entry
 * @param {boolean} isShown
 */
function setShown(panel, entry, isShown) {
  entry.querySelector("button")?.setAttribute("aria-pressed", String(isShown));
  for (const drawn of panel.querySelectorAll(`.s${entry.dataset["series"]}`)) {
    drawn.classList.toggle("off", !isShown);
  }
}

for (const panel of document.querySelectorAll(".panel")) {
  for (const entry of entries(panel)) {
    makeButton(panel, entry);
  }
}
