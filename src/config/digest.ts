/** Whether a configuration is another one than before. */
import { createHash } from "node:crypto";

/** Tells texts apart: a mark for the byte order, which some readers leave out, makes no other one of it. */
export function digestOf(text: string): string {
  return createHash("sha256")
    .update(text.replace(/^\ufeff/, ""))
    .digest("hex");
}
