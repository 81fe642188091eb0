// The metrics of the generic ephemeral volume controller, with the names that kube-controller-manager uses.
import { Counter, type Registry } from 'prom-client'

export interface EphemeralMetrics {
  readonly creations: Counter
  readonly failures: Counter
}

export const createEphemeralMetrics = (registry: Registry): EphemeralMetrics => ({
  creations: new Counter({
    name: 'ephemeral_volume_controller_create_total',
    help: 'Creation requests for claims of ephemeral volumes.',
    registers: [registry],
  }),
  failures: new Counter({
    name: 'ephemeral_volume_controller_create_failures_total',
    help: 'Failed creation requests for claims of ephemeral volumes.',
    registers: [registry],
  }),
})
