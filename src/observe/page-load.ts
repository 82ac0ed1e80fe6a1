/** The last day as small charts, drawn as SVG. */
import { formatBytes, formatCount } from "../base/phrases.ts";
import type { LoadSlot } from "../model/status.ts";
import { type Html, html } from "./html.ts";

const WIDTH = 480;
const HEIGHT = 60;

export function renderLoad(slots: readonly LoadSlot[]): Html {
  const bytes = slots.map((slot) => slot.bytes);
  const delivered = slots.map((slot) => slot.delivered);
  const queued = slots.map((slot) => slot.mostQueued);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return html`<h2>The last day</h2>
<div class="charts">
${chart("Received", bytes, `${formatBytes(sum(bytes))} in all`, formatBytes)}
${chart("Delivered", delivered, formatCount(sum(delivered), "transfer", "transfers"), String)}
${chart("Queued", queued, `${Math.max(0, ...queued)} at most`, String)}
</div>`;
}

/** Says in words what it draws, for those who do not see it. */
function chart(
  title: string,
  values: readonly number[],
  caption: string,
  format: (value: number) => string,
): Html {
  const most = Math.max(1, ...values);
  const step = WIDTH / values.length;
  const bars = values.map((value, at) => {
    const height = value === 0 ? 0 : Math.max(1, (value / most) * HEIGHT);
    return html`<rect x="${(at * step).toFixed(1)}" y="${(HEIGHT - height).toFixed(1)}" width="${(step * 0.8).toFixed(1)}" height="${height.toFixed(1)}"/>`;
  });
  const peak = Math.max(0, ...values);
  return html`<figure><figcaption>${title} <span>${caption}</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title} over the last 24 hours: ${caption}, ${format(peak)} in the busiest quarter of an hour">${bars}</svg>
<p class="axis" aria-hidden="true"><span>24 h ago</span><span>at most ${format(peak)} in 15 minutes</span><span>now</span></p></figure>`;
}
