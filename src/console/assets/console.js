// Keeps the page up to date, and says so when it cannot. The server renders everything; text from senders is escaped there.

const SILENT_MS = 8_000;
const REFRESH_MS = 1_500;
// How often a page without events is fetched, and asks for them again.
const REFUSED_MS = 5_000;
const silence = document.getElementById("silence");
const live = document.getElementById("live");
// The one region that screen readers announce.
const said = document.getElementById("said");

let title = document.title;
// The time of the last heartbeat, as the server writes it.
let clock = live?.querySelector("time")?.textContent;
let lastBeatAt = Date.now();
let shownVersion;
let isRefreshing = false;
let refreshedAt = 0;
let isDue = false;
// Whether this visitor has acted: then outcomes are announced.
let hasActed = false;

let events = listen();

function listen() {
  const source = new EventSource("api/events?as=heartbeat");
  source.addEventListener("heartbeat", onHeartbeat);
  // A browser does not try again if the answer is a refusal, as when too many pages are open.
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => (events = listen()), REFUSED_MS);
  });
  return source;
}

function onHeartbeat(event) {
  const beat = JSON.parse(event.data);
  lastBeatAt = Date.now();
  title = beat.title;
  clock = beat.clock;
  if (live !== null) live.textContent = `live, as of ${clock}`;
  if (shownVersion !== beat.version) {
    shownVersion = beat.version;
    isDue = true;
  }
  showSilence();
}

setInterval(() => {
  showSilence();
  // Times such as "2 min ago" grow old, so a page without changes is fetched again too.
  const isOld = Date.now() - refreshedAt > (events.readyState === EventSource.CLOSED ? REFUSED_MS : 30_000);
  if ((isDue || isOld) && Date.now() - refreshedAt > REFRESH_MS && !document.hidden) void refresh();
}, 500);

// A browser that slept has missed heartbeats.
document.addEventListener("visibilitychange", showSilence);

function showSilence() {
  const isSilent = Date.now() - lastBeatAt > SILENT_MS;
  const words = `No answer from Inlet since ${clock}.`;
  if (isSilent && silence.hidden) say(words);
  silence.hidden = !isSilent;
  silence.textContent = isSilent ? `${words} This page shows the state of that time.` : "";
  document.documentElement.classList.toggle("silent", isSilent);
  document.title = isSilent ? `⚠ No answer – ${title}` : title;
}

// Lets screen readers announce the text.
function say(text) {
  if (said !== null && said.textContent !== text) said.textContent = text;
}

// Fetches this page again, and replaces the sections that differ.
async function refresh() {
  if (isRefreshing) {
    // The answer under way may be older than what is to be shown.
    isDue = true;
    return;
  }
  isRefreshing = true;
  isDue = false;
  refreshedAt = Date.now();
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!response.ok) return;
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    lastBeatAt = Date.now();
    clock = next.querySelector("#live time")?.textContent ?? clock;
    for (const section of document.querySelectorAll("[data-live]")) {
      const newer = section.id === "" ? null : next.getElementById(section.id);
      if (newer !== null) replace(section, newer);
    }
    showNotice(next);
    const outcome = document.querySelector(".outcome, #batches li, #problems .names li");
    if (hasActed && outcome !== null) say(outcome.textContent);
  } catch {
    // The heartbeat says whether the daemon answers.
  } finally {
    isRefreshing = false;
  }
}

// Opened rows, ticked boxes and the focus stay. `data-content`: what was fetched last, because scripts and visitors change
// the section itself.
function replace(section, newer) {
  const content = newer.innerHTML;
  if (section.dataset.content === content || isInUse(section)) return;
  const active = document.activeElement;
  const opened = [...section.querySelectorAll("details[open][id]")].map(({ id }) => id);
  const ticked = [...section.querySelectorAll("input[type=checkbox][id]:checked")].map(({ id }) => id);
  const findFocused = section.contains(active) ? rememberControl(active, section) : undefined;
  section.dataset.content = content;
  section.replaceChildren(...document.importNode(newer, true).childNodes);
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  for (const id of ticked) {
    const box = document.getElementById(id);
    if (box !== null) box.checked = true;
  }
  findFocused?.()?.focus();
}

// Whether the visitor types, has selected text or presses a button in the section: a click would be lost.
function isInUse(section) {
  const active = document.activeElement;
  const isTyping = section.contains(active) && active.matches("input:not([type=checkbox]), select, textarea");
  const typed = [...section.querySelectorAll("input[type=password], input[type=search]")];
  const isTyped = typed.some((input) => input.value !== input.defaultValue);
  const selection = document.getSelection();
  const isSelected = selection?.type === "Range" && section.contains(selection.anchorNode);
  return isTyping || isTyped || isSelected || section.matches(":active");
}

// Returns a function that finds the same control in the new content: by its id, else by its text within the same row.
function rememberControl(element, section) {
  if (element.id !== "") return () => document.getElementById(element.id);
  const row = element.closest("[id]")?.id ?? section.id;
  const text = element.textContent;
  return () =>
    [...(document.getElementById(row)?.querySelectorAll(element.localName) ?? [])].find(
      (it) => it.textContent === text,
    );
}

// Forms of actions are sent in the background; the row shows the outcome.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.hasAttribute("data-act")) return;
  const data = new FormData(form, event.submitter);
  // Several transfers may need a confirmation, which is a page of its own.
  if (data.has("filter") && data.get("action") !== "retry") return;
  event.preventDefault();
  hasActed = true;
  event.submitter?.setAttribute("disabled", "");
  try {
    // A field that is called "action" hides the property.
    const answer = await fetch(form.getAttribute("action"), {
      method: "POST",
      body: new URLSearchParams(data),
      redirect: "manual",
    });
    const isRefused = answer.type !== "opaqueredirect" && !answer.ok;
    if (isRefused) return showRefusal(await answer.text());
    form.reset();
    for (const box of document.querySelectorAll(`input[form="${CSS.escape(form.id)}"], [data-pick-page]`)) {
      box.checked = false;
    }
  } finally {
    event.submitter?.removeAttribute("disabled");
    document.activeElement?.blur();
    await refresh();
  }
});

// A session may be over: the answer is a page that says so and asks for the token.
function showRefusal(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  const signing = page.querySelector(".signing");
  if (!showNotice(page)) return location.reload();
  if (signing !== null) document.querySelector(".signing")?.replaceWith(document.importNode(signing, true));
}

// Shows the notice of a fetched page. Returns whether it has one.
function showNotice(page) {
  const notice = page.querySelector("#main > .notice");
  if (notice === null) return false;
  for (const earlier of document.querySelectorAll("#main > .notice")) earlier.remove();
  document.getElementById("main").prepend(document.importNode(notice, true));
  say(notice.textContent);
  scrollTo(0, 0);
  return true;
}

// The box that selects all transfers of the page.
document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || !target.hasAttribute("data-pick-page")) return;
  for (const box of document.querySelectorAll("input[name=t]")) box.checked = target.checked;
});
