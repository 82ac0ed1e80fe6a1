/** Checks the passwords in the drop folder: a wrong one costs an attempt, or leaves its transfer waiting. */
import { asFault, systemCode } from "../../base/faults.ts";
import { asOwnerOf } from "../../base/process.ts";
import { describeOuterBlanks } from "../../base/secret.ts";
import type { Settings } from "../../config/settings.ts";
import { DropFolder, readPassword } from "../../passwords/dropped.ts";
import type { Findings } from "./findings.ts";

const UNUSED = "is not one line with a password, so it is not used: write only the password into it";

export async function checkDropped(findings: Findings, { state }: Settings): Promise<void> {
  try {
    await asOwnerOf(state, async () => {
      for (const { path } of await new DropFolder(state).list()) {
        const password = await readPassword(path);
        const wrong = password === undefined ? UNUSED : describeOuterBlanks(password);
        if (wrong !== undefined) findings.warn("folders", "passwords", `${path} ${wrong}`);
      }
    });
  } catch (error) {
    // The first start creates the folder.
    if (systemCode(error) !== "ENOENT") findings.skip("folders", "passwords", asFault(error).message);
  }
}
