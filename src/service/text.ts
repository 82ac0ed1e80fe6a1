/** Bytes of a text whose encoding nobody vouches for → the texts they may mean, the likeliest first. */

/**
 * The byte-order mark decides; else what the Content-Type claims; else what the bytes look like. Each is decoded when it is
 * asked for: a large text is in memory once.
 */
export function* decodeText(bytes: Uint8Array, contentType: string | undefined): Generator<string> {
  const marked = byteOrderMark(bytes);
  const likely =
    marked === undefined
      ? [withoutMark(bytes), declaredCharset(contentType), "utf-8", "windows-1252"]
      : [marked];
  for (const charset of new Set(likely)) {
    const text = charset === undefined ? undefined : decode(bytes, charset);
    if (text === undefined) continue;
    yield text;
    // Nothing but ASCII means the same in the charsets that are left.
    if (charset === "utf-8" && text.length === bytes.length) return;
  }
}

function declaredCharset(contentType: string | undefined): string | undefined {
  return /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType ?? "")?.[1]?.toLowerCase();
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

/** UTF-16 without a mark shows itself by its zero bytes: lists of names and digits are mostly ASCII. */
function withoutMark(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, 4096);
  const zeros = [0, 0];
  for (const [at, byte] of sample.entries()) if (byte === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  if (Math.max(even, odd) < sample.length / 8) return undefined;
  return even > odd ? "utf-16be" : "utf-16le";
}

/** `undefined` where the bytes are not text in that charset, or the charset is not known. */
function decode(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
