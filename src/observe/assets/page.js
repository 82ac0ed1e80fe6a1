// Keeps the page up to date. The server sends sections as HTML in which text from senders is escaped.
const live = document.getElementById("live");
const events = new EventSource("api/events?as=page");

events.addEventListener("page", (event) => {
  const { sections, title, at } = JSON.parse(event.data);
  for (const [id, content] of Object.entries(sections)) update(document.getElementById(id), content);
  document.title = title;
  live.textContent = `live, as of ${at.slice(11, 19)} UTC`;
});

events.addEventListener("error", () => {
  live.textContent = "connection lost, reconnecting";
});

// Leaves a section alone while the visitor uses a control or has selected text in it.
function update(section, content) {
  if (section === null || section.dataset.content === content) return;
  const active = document.activeElement;
  if (active !== section && section.contains(active) && active.matches("input, select, textarea, button"))
    return;
  const selection = document.getSelection();
  if (selection?.type === "Range" && section.contains(selection.anchorNode)) return;
  // An opened question is not closed.
  if (section.querySelector("details[open]") !== null) return;
  const focused = active !== section && section.contains(active) ? active.getAttribute("aria-label") : null;
  section.dataset.content = content;
  section.innerHTML = content;
  if (focused !== null) section.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}
