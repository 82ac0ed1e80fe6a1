/** `version`: the version of Inlet and Node, and the platform. */
import { release } from "node:os";
import type { Command } from "commander";
import { PACKAGE_FOLDER, readVersion } from "../base/version.ts";
import type { Runner } from "./command.ts";
import type { CommonOptions } from "./options.ts";
import { printable, printJson } from "./printing.ts";

export function define(command: Command, run: Runner): void {
  command.option("--json", "print it as JSON").action(
    run(async (context, { json }: CommonOptions) => {
      const facts = {
        inlet: readVersion(),
        node: process.versions.node,
        platform: process.platform,
        architecture: process.arch,
        kernel: release(),
        installed: PACKAGE_FOLDER,
      };
      if (json) printJson(context, facts);
      else
        context.stdout.write(
          `Inlet ${facts.inlet}, Node ${facts.node}, ${facts.platform} ${facts.architecture} ${facts.kernel}, in ${printable(facts.installed)}\n`,
        );
      return "fine";
    }),
  );
}
