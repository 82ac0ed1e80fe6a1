/** Whether answers work, tried out on the service before anything is written. */
import { Fault } from "../../base/faults.ts";
import type { Secret } from "../../base/secret.ts";
import type { ServiceSettings } from "../../config/settings.ts";
import type { ServicePort } from "../../service/port.ts";
import { canPoll, formatVersions, openClient, throwawayClientId } from "../client.ts";
import type { Context } from "../context.ts";
import { say } from "../printing.ts";

const TIMEOUT_MS = 10_000;

export class Trial {
  readonly #context: Context;
  readonly #isOn: boolean;
  /** Addresses for which somebody has yet to register the client id. */
  readonly unregistered: string[] = [];

  /** Where it is not on, everything is fine. */
  constructor(context: Context, isOn: boolean) {
    this.#context = context;
    this.#isOn = isOn;
  }

  /** What is in the way of using the service; `undefined` for nothing. Throws `STOPPED`. */
  async service(settings: ServiceSettings): Promise<Fault | undefined> {
    return this.#attempt(settings, throwawayClientId(), async (service) => {
      const versions = await service.apiVersions(this.#context.stop);
      const spoken = versions && formatVersions(versions);
      if (versions !== undefined && !canPoll(versions)) {
        throw new Fault("API_VERSION", { detail: `it speaks ${spoken}` });
      }
      const version = spoken === undefined ? "but does not show its version" : `and speaks ${spoken}`;
      say(this.#context, `  ${service.origin} answers, ${version}.`);
    });
  }

  /** What keeps the client id from standing for the address. No mail is sent, and no token is kept. */
  async mailbox(settings: ServiceSettings, clientId: Secret, email: string): Promise<Fault | undefined> {
    const fault = await this.#attempt(settings, clientId, async (service) => {
      await service.obtainToken(email, undefined, this.#context.stop);
      say(this.#context, `  ${email} is verified by the client id.`);
    });
    if (fault === undefined || !["TOKEN_REFUSED", "POLICY_REFUSED"].includes(fault.code)) return fault;
    this.unregistered.push(email);
    say(this.#context, `  ${email}: the service does not know this client id for it yet.`);
    return undefined;
  }

  async #attempt(
    settings: ServiceSettings,
    clientId: Secret,
    work: (service: ServicePort) => Promise<void>,
  ): Promise<Fault | undefined> {
    if (!this.#isOn) return undefined;
    const service = openClient(settings, clientId, TIMEOUT_MS);
    try {
      await work(service);
      return undefined;
    } catch (error) {
      if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
      return error;
    } finally {
      await service.close();
    }
  }
}
