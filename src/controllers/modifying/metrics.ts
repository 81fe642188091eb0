// How often drivers were asked to change attributes, and how often they failed, under the documents' names. How long the
// calls took is csi_sidecar_operations_seconds, with all other calls.
import { Counter, type Registry } from 'prom-client'

/** One for the process, however many drivers it serves. */
export interface ModifyingMetrics {
  /** One call of ControllerModifyVolume has ended. */
  asked(of: {
    readonly driverName: string
    readonly isAboutClass: boolean
    readonly isAboutIo: boolean
    /** As gRPC's names go: `OK`, `InvalidArgument`. */
    readonly code: string
  }): void
}

export function createModifyingMetrics(registry: Registry): ModifyingMetrics {
  const registers = [registry]
  const pair = (name: string, what: string) => ({
    total: new Counter({
      name: `${name}_total`,
      help: `Calls to change ${what}.`,
      labelNames: ['driver_name'],
      registers,
    }),
    errors: new Counter({
      name: `${name}_errors_total`,
      help: 'Those that failed.',
      labelNames: ['driver_name', 'grpc_status_code'],
      registers,
    }),
  })
  const classes = pair('controller_modify_volume', 'the attributes class of a volume')
  const io = pair('controller_update_io_provisioning', 'the iops or throughput of a volume')
  return {
    asked({ driverName, isAboutClass, isAboutIo, code }) {
      for (const { total, errors } of [...(isAboutClass ? [classes] : []), ...(isAboutIo ? [io] : [])]) {
        total.inc({ driver_name: driverName })
        if (code !== 'OK') errors.inc({ driver_name: driverName, grpc_status_code: code })
      }
    },
  }
}
