/** Which delivery a folder is, by its manifest. Consumers may have changed or replaced anything in it. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

const MANIFEST = "transfer.json";
/** More than the manifest of the largest transfer, and less than does harm. */
const MOST_BYTES = 512 * 1024 * 1024;

/** `undefined` where the manifest is missing, or not one of ours. Follows no link, and waits for no pipe. */
export async function readDeliveryId(folder: string): Promise<string | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    await using file = await open(join(folder, MANIFEST), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > MOST_BYTES) return undefined;
    const manifest: unknown = JSON.parse(await file.readFile("utf8"));
    const isObject = typeof manifest === "object" && manifest !== null;
    return isObject && "deliveryId" in manifest && typeof manifest.deliveryId === "string"
      ? manifest.deliveryId
      : undefined;
  } catch {
    return undefined;
  }
}
