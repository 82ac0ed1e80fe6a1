/** Charts of the past as SVG, which works without script and without inline styles. */
import { formatBytes, formatCount, formatMoment } from "../base/phrases.ts";
import type { Tally } from "../model/views.ts";
import { type Html, html, type PageTime } from "./html.ts";

const HOUR_MS = 60 * 60_000;

/** `slots` of `slotMs` each. */
export const RANGES = {
  day: { title: "Last day", slots: 48, slotMs: HOUR_MS / 2, each: "half an hour" },
  week: { title: "Last week", slots: 84, slotMs: 2 * HOUR_MS, each: "two hours" },
  month: { title: "Last month", slots: 60, slotMs: 12 * HOUR_MS, each: "half a day" },
} as const;

export type Range = keyof typeof RANGES;

const WIDTH = 960;
const HEIGHT = 120;

/** The first slot of a range. All slots begin at multiples of their length. */
export function startOf(range: Range, nowMs: number): number {
  const { slots, slotMs } = RANGES[range];
  return (Math.floor(nowMs / slotMs) - slots + 1) * slotMs;
}

/** Bars of deliveries, with transfers that did not end well on top of them. */
export function renderChart(slots: readonly Tally[], range: Range, time: PageTime): Html {
  const sum = (key: keyof Tally) => slots.reduce((total, slot) => total + slot[key], 0);
  const totals = slots.map(({ delivered, quarantined, gone }) => delivered + quarantined + gone);
  const highest = Math.max(0, ...totals);
  const scale = Math.max(1, highest);
  const width = WIDTH / slots.length;
  const bars = slots.map((slot, at) => {
    const good = (slot.delivered / scale) * HEIGHT;
    const bad = ((slot.quarantined + slot.gone) / scale) * HEIGHT;
    const bar = (kind: string, y: number, height: number) =>
      height === 0
        ? undefined
        : html`<rect class="${kind}" x="${round(at * width + 1)}" y="${round(y)}" width="${round(width - 2)}" height="${round(height)}"/>`;
    return html`${bar("bar-good", HEIGHT - good, good)}${bar("bar-bad", HEIGHT - good - bad, bad)}`;
  });
  const words = `${sum("delivered")} delivered (${formatBytes(sum("bytes"))}), ${sum("quarantined")} quarantined, ${sum("gone")} gone`;
  const { title, each } = RANGES[range];
  return html`<figure><figcaption>${words}. ${highest === 0 ? undefined : html`<span>Most in ${each}: ${formatCount(highest, "transfer", "transfers")}.</span>`}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}: ${words}">${bars}</svg>
<p class="legend"><span class="key bar-good"></span> delivered <span class="key bar-bad"></span> quarantined or gone</p>
<p class="axis"><span>${label(startOf(range, time.nowMs), range, time)}</span><span>now</span></p></figure>`;
}

function label(ms: number, range: Range, { zone }: PageTime): string {
  const exact = formatMoment(new Date(ms).toISOString(), zone);
  return range === "day" ? exact.slice(11, 16) : exact.slice(0, 10);
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
