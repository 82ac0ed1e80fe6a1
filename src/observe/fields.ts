/** What a form, or a program in JSON, has sent. */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";

export type Fields = Readonly<Record<string, string>>;

const MOST_BYTES = 16 * 1024;

/** A form, or an object of texts in JSON. What is too large or neither is nothing. */
export async function readFields(request: IncomingMessage): Promise<Fields> {
  let bytes = 0;
  const bounded = Readable.from(
    (async function* () {
      for await (const chunk of request) {
        bytes += (chunk as Buffer).length;
        if (bytes > MOST_BYTES) return;
        yield chunk;
      }
    })(),
  );
  const text = (await buffer(bounded)).toString();
  if (bytes > MOST_BYTES) return {};
  if (request.headers["content-type"]?.startsWith("application/json") !== true) {
    return Object.fromEntries(new URLSearchParams(text));
  }
  try {
    const parsed: unknown = JSON.parse(text);
    const entries = Object.entries(parsed ?? {}).filter(([, value]) => typeof value === "string");
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}
