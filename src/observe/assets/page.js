// Keeps the page up to date. Sections come as finished HTML, in which whatever a sender wrote is text already.
const live = document.getElementById("live");
const events = new EventSource("api/events?as=page");

events.addEventListener("page", (event) => {
  const { sections, title, at } = JSON.parse(event.data);
  for (const [id, content] of Object.entries(sections)) exchange(document.getElementById(id), content);
  document.title = title;
  live.textContent = `live, as of ${at.slice(11, 19)} UTC`;
});

events.addEventListener("error", () => {
  live.textContent = "the connection is lost, and is tried again";
});

// Nobody is interrupted: what holds the focus inside, or a selection, stays as it is.
function exchange(section, content) {
  if (section === null || section.dataset.content === content) return;
  const active = document.activeElement;
  if (active !== section && section.contains(active) && active.matches("input, select, textarea, button"))
    return;
  const selection = document.getSelection();
  if (selection?.type === "Range" && section.contains(selection.anchorNode)) return;
  // Somebody has opened a question there and weighs it.
  if (section.querySelector("details[open]") !== null) return;
  const focused = active !== section && section.contains(active) ? active.getAttribute("aria-label") : null;
  section.dataset.content = content;
  section.innerHTML = content;
  if (focused !== null) section.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}
