/** Checks the passwords in the drop folder: a wrong one costs an attempt, or leaves its transfer waiting. */
import { asFault, systemCode } from "../../base/faults.ts";
import { asOwnerOf } from "../../base/process.ts";
import { describeOuterBlanks } from "../../base/secret.ts";
import type { Settings } from "../../config/settings.ts";
import { type Drop, DropFolder, readPassword } from "../../passwords/dropped.ts";
import type { Findings } from "./findings.ts";

const AREA = "folders";
const CHECK = "passwords";

export async function checkDropped(findings: Findings, { state }: Settings): Promise<void> {
  try {
    await asOwnerOf(state, async () => {
      for (const drop of await new DropFolder(state).list()) await checkDrop(findings, drop);
    });
  } catch (error) {
    // The first start creates the folder.
    if (systemCode(error) !== "ENOENT") findings.skip(AREA, CHECK, asFault(error).message);
  }
}

async function checkDrop(findings: Findings, { path }: Drop): Promise<void> {
  const password = await readPassword(path);
  if (password === undefined) {
    const advice = "Write only the password into the file, or remove the file.";
    findings.warn(AREA, CHECK, `${path} is not one line with a password, so it is not used`, advice);
    return;
  }
  const blanks = describeOuterBlanks(password);
  if (blanks !== undefined) findings.warn(AREA, CHECK, `${path} ${blanks}`);
}
