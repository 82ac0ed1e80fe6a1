import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseUnit, planRun } from "../../../src/cli/in-unit.ts";
import { callCommand } from "../../support/command.ts";
import { ROOT } from "../../support/root.ts";

const UNIT = `# /etc/systemd/system/inlet@.service
[Unit]
User=not-this-one
[Service]
Type=notify
ExecStart=/opt/inlet/bin/inlet run --config /etc/inlet/%i.yaml
User=inlet
LoadCredential=secret:/etc/inlet/secrets
LoadCredential=other:/etc/inlet/other
ReadWritePaths=/srv/a \\
  /srv/b
StateDirectory=%p-%i
WatchdogSec=2min

# /etc/systemd/system/inlet@.service.d/own.conf
[Service]
LoadCredential=
LoadCredential=secret:/etc/inlet/new-secrets
Environment="HTTPS_PROXY=http://proxy.example:3128" INLET_LOG__LEVEL=debug
`;

test("the settings of a unit are those of its section, with drop-ins, resets and its name", () => {
  expect(parseUnit("inlet@one", UNIT)).toEqual({
    command: ["/opt/inlet/bin/inlet", "run", "--config", "/etc/inlet/one.yaml"],
    properties: [
      ["User", "inlet"],
      ["ReadWritePaths", "/srv/a    /srv/b"],
      ["StateDirectory", "inlet-one"],
      ["LoadCredential", "secret:/etc/inlet/new-secrets"],
      ["Environment", '"HTTPS_PROXY=http://proxy.example:3128" INLET_LOG__LEVEL=debug'],
    ],
  });
});

test("the settings of a unit of the unit that ships are its user, its folders and its credentials", () => {
  const shipped = readFileSync(join(ROOT, "systemd/inlet.service"), "utf8");
  const { properties, command } = parseUnit("inlet", shipped);
  expect(command).toEqual(["/opt/inlet/bin/inlet", "run", "--config", "/etc/inlet/inlet.yaml"]);
  expect(Object.fromEntries(properties)).toMatchObject({
    User: "inlet",
    StateDirectory: "inlet",
    RuntimeDirectory: "inlet",
    LoadCredential: "secret:/etc/inlet/secrets",
    ReadWritePaths: "/srv/inbox",
    ProtectSystem: "strict",
  });
});

test("needs root, and names the whole command, with absolute paths", async () => {
  const asUser = vi.spyOn(process, "geteuid").mockReturnValue(1_000);
  onTestFinished(() => asUser.mockRestore());
  const words = ["verify-address", "orders", "--unit", "inlet", "--code-file", "code", "--config", "/a.yaml"];
  const whole = `sudo inlet verify-address orders --config /a.yaml --code-file ${resolve("code")} --json --unit inlet`;
  await expect(callCommand([...words, "--json"])).rejects.toThrow(whole);
  const check = callCommand(["config", "check", "--no-secrets", "--unit", "inlet"]);
  await expect(check).rejects.toThrow("sudo inlet config check --no-secrets --unit inlet");
});

describe("the command in a unit", () => {
  const OWN = ["/usr/bin/node", "/opt/own/bin/inlet.cjs"];
  const INLET = "/opt/inlet/bin/inlet";

  test.each([
    [`-${INLET} run --config /a.yaml`, ["doctor"], [INLET, "doctor", "--config", "/a.yaml"]],
    [`${INLET} once --config=/a.yaml`, ["doctor", "--json"], [INLET, "doctor", "--json", "--config=/a.yaml"]],
    [`/bin/node "/my inlet/inlet.cjs" run`, ["doctor"], ["/bin/node", "/my inlet/inlet.cjs", "doctor"]],
    [`${INLET} run --config /a.yaml`, ["doctor", "--config", "/b"], [INLET, "doctor", "--config", "/b"]],
    ["/usr/local/bin/start-inlet", ["doctor"], [...OWN, "doctor"]],
  ])(
    "of %s with the words %j is that program, if it is known, with its configuration",
    (exec, words, all) => {
      const args = planRun(parseUnit("inlet", `[Service]\nExecStart=${exec}\n`), "name", words, OWN);
      expect(args.slice(args.indexOf("--") + 1)).toEqual(all);
    },
  );

  test("leaves the runtime folder of a running daemon alone", () => {
    const args = planRun(parseUnit("inlet", UNIT), "name", ["doctor"], OWN);
    expect(args).toContain("--property=RuntimeDirectoryPreserve=yes");
    expect(args).toContain("--property=LoadCredential=secret:/etc/inlet/new-secrets");
  });
});
