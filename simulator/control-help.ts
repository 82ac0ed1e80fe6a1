/** What `GET /control` tells: every call of the control interface, with an example. */
import { SCENARIO_REFERENCE } from "./reference.ts";

/** `base`: where the simulator listens. */
export function controlHelp(base: string): string {
  return CONTROL_HELP.replaceAll("BASE", base);
}

const CONTROL_HELP = `The control interface of a simulated transfer service.
Bodies and answers are JSON; what does not fit is answered with 400 and {"error": "<key>: <what is wrong>"}.

GET /control/transfers                                   every transfer: ids, password, how many were refused
  curl BASE/control/transfers

POST /control/transfers                                  somebody sends a transfer
  curl BASE/control/transfers -d '{"from": "anna@supplier.example", "to": ["orders@example.com"],
    "files": [{"name": "hello.txt", "text": "Hello"}, {"name": "big.bin", "generate": {"bytes": 1000000}}]}'

POST /control/transfers/<trackingId>/revoke              the sender takes it back
  curl -X POST BASE/control/transfers/20240524-192513-3n2yqVIW/revoke

POST /control/transfers/<trackingId>/remove              the administrator deletes it
  curl -X POST BASE/control/transfers/20240524-192513-3n2yqVIW/remove

POST /control/transfers/<trackingId>/replace-address     a proxy address takes the place of a deleted user's
  curl BASE/control/transfers/20240524-192513-3n2yqVIW/replace-address \\
    -d '{"old": "orders@example.com", "new": "deleted-1@proxy.invalid"}'

GET /control/faults                                      every fault, and how often each has struck
  curl BASE/control/faults

POST /control/faults                                     a fault that strikes from now on
  curl BASE/control/faults -d '{"on": "file", "does": {"kind": "reset", "afterBytes": 1000}}'
  curl BASE/control/faults -d '{"on": "received", "times": "always", "does": {"kind": "error", "status": 503}}'

DELETE /control/faults                                   no faults any more
  curl -X DELETE BASE/control/faults

DELETE /control/faults/<id>                              one fault less
  curl -X DELETE BASE/control/faults/fault-1

POST /control/advance                                    moves the service's time forward
  curl BASE/control/advance -d '{"seconds": 86400}'

GET /control/requests                                    what was asked of the service, without secrets
  curl BASE/control/requests

GET /control/mails                                       the verification codes that were mailed
  curl BASE/control/mails

${SCENARIO_REFERENCE}`;
