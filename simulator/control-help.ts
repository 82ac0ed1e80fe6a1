/** The text of `GET /control`: every call of the control interface, with an example. */
import { SCENARIO_REFERENCE } from "./reference.ts";

/** `base`: the address of the simulator. */
export function controlHelp(base: string): string {
  return CONTROL_HELP.replaceAll("BASE", base);
}

const CONTROL_HELP = `The control interface of a simulated transfer service.
Bodies and answers are JSON. A wrong body is answered with 400 and {"error": "<key>: <problem>"}.

GET /control/transfers                                   lists transfers: ids, password, refused passwords
  curl BASE/control/transfers

POST /control/transfers                                  sends a transfer
  curl BASE/control/transfers -d '{"from": "anna@supplier.example", "to": ["orders@example.com"],
    "files": [{"name": "hello.txt", "text": "Hello"}, {"name": "big.bin", "generate": {"bytes": 1000000}}]}'

POST /control/transfers/<trackingId>/revoke              revokes it, as the sender
  curl -X POST BASE/control/transfers/20240524-192513-3n2yqVIW/revoke

POST /control/transfers/<trackingId>/remove              deletes it, as the administrator
  curl -X POST BASE/control/transfers/20240524-192513-3n2yqVIW/remove

POST /control/transfers/<trackingId>/replace-address     replaces the address of a deleted user
  curl BASE/control/transfers/20240524-192513-3n2yqVIW/replace-address \\
    -d '{"old": "orders@example.com", "new": "deleted-1@proxy.invalid"}'

GET /control/faults                                      lists faults, and how often each has struck
  curl BASE/control/faults

POST /control/faults                                     adds a fault
  curl BASE/control/faults -d '{"on": "file", "does": {"kind": "reset", "afterBytes": 1000}}'
  curl BASE/control/faults -d '{"on": "received", "times": "always", "does": {"kind": "error", "status": 503}}'

DELETE /control/faults                                   removes all faults
  curl -X DELETE BASE/control/faults

DELETE /control/faults/<id>                              removes one fault
  curl -X DELETE BASE/control/faults/fault-1

POST /control/advance                                    advances the service's clock
  curl BASE/control/advance -d '{"seconds": 86400}'

GET /control/requests                                    lists the requests to the service, without secrets
  curl BASE/control/requests

GET /control/mails                                       lists the mailed verification codes
  curl BASE/control/mails

${SCENARIO_REFERENCE}`;
