/** `completion`: prints a script for bash, zsh or fish. `npm run docs` makes them from the commands. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Argument, type Command } from "commander";
import { PACKAGE_FOLDER } from "../base/version.ts";
import type { Runner } from "./command.ts";

const HELP = `
The script completes commands, options, their choices, files and folders.

  inlet completion bash > /etc/bash_completion.d/inlet
  inlet completion zsh > /usr/local/share/zsh/site-functions/_inlet
  inlet completion fish > ~/.config/fish/completions/inlet.fish`;

/** In config/completion. */
const SCRIPTS = { bash: "inlet.bash", zsh: "_inlet", fish: "inlet.fish" } as const;

export function define(command: Command, run: Runner): void {
  command
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", HELP)
    .action(
      run(async ({ stdout }, shell: keyof typeof SCRIPTS) => {
        stdout.write(await readFile(join(PACKAGE_FOLDER, "config/completion", SCRIPTS[shell]), "utf8"));
        return "fine";
      }),
    );
}
