// Moves a worker and maps a type, in a dialog.

import { element, setText, show } from "./elements.js";
import * as server from "./server.js";

/**
 * A choice in a dialog: its value, and its text.
 * @typedef {{ value: string, text: string }} Choice
 */

const heading = element("h2", { id: "asked" });
const about = element("p");
const select = element("select", { name: "slice" });
const failed = element("p", { class: "failed", role: "alert" });
const go = element("button", { class: "main", type: "submit" });
const cancel = element("button", { type: "button" }, "Cancel");
const form = element(
  "form",
  { method: "dialog" },
  heading,
  about,
  element("label", {}, "Slice ", select),
  failed,
  element("div", { class: "buttons" }, go, cancel),
);
const dialog = element("dialog", { "aria-labelledby": "asked" }, form);

/** @type {(slice: string) => Promise<string>} */
let act = async () => "";
/** @type {(said: string) => void} */
let tell = () => {};
let isBusy = false;

cancel.addEventListener("click", () => dialog.close());
// Browsers differ in what Enter does on a list of choices.
select.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    form.requestSubmit();
  }
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (isBusy) {
    return;
  }
  isBusy = true;
  go.setAttribute("aria-disabled", "true");
  setText(failed, "");
  try {
    const said = await act(select.value);
    dialog.close();
    tell(said);
  } catch (why) {
    setText(failed, why instanceof server.Refused ? why.message : `The dashboard did not answer: ${why}`);
    select.focus();
  } finally {
    isBusy = false;
    go.removeAttribute("aria-disabled");
  }
});

/**
 * Puts the dialog into the page.
 * @param {(said: string) => void} onDone gets the sentence about what was done
 */
export function prepare(onDone) {
  tell = onDone;
  document.body.append(dialog);
}

/**
 * Asks where a worker is to go, and moves it.
 * @param {number} controller
 * @param {string} worker
 * @param {string} from
 * @param {Choice[]} slices
 */
export function moveWorker(controller, worker, from, slices) {
  const others = slices.filter((slice) => slice.value !== from);
  const says = `It serves slice ${from} now. Tasks that it holds are finished; waiting tasks stay where they are.`;
  ask(`Move worker ${worker}`, says, others, "Move", (slice) =>
    server.change("/move", { controller, worker, slice }),
  );
}

/**
 * Asks where a type is to go, and maps it.
 * @param {number} controller
 * @param {string} type
 * @param {string | null} from
 * @param {Choice[]} slices
 */
export function mapType(controller, type, from, slices) {
  const none = { value: "", text: "none: refuse its tasks" };
  const others = slices.filter((slice) => slice.value !== from).concat(from === null ? [] : [none]);
  const now = from === null ? "Its tasks are refused now." : `Its tasks go to slice ${from} now.`;
  const says = `${now} Tasks that already wait stay where they are.`;
  ask(`Send type ${type} elsewhere`, says, others, "Send", (slice) =>
    server.change("/map", { controller, type, slice: slice === "" ? null : slice }),
  );
}

/**
 * @param {string} title
 * @param {string} says
 * @param {Choice[]} choices
 * @param {string} word
 * @param {(slice: string) => Promise<string>} then
 */
function ask(title, says, choices, word, then) {
  setText(heading, title);
  setText(about, choices.length > 0 ? says : `${says} There is no other slice.`);
  select.replaceChildren(...choices.map(({ value, text }) => element("option", { value }, text)));
  setText(go, word);
  show(go, choices.length > 0);
  setText(failed, "");
  act = then;
  dialog.showModal();
  (choices.length > 0 ? select : cancel).focus();
}
