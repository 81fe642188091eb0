// Counts ControllerModifyVolume calls and their failures, under the metric names of the KEPs. Durations are in
// csi_sidecar_operations_seconds, like those of all other CSI calls.
import { Counter, type Registry } from 'prom-client'

/** One per process, shared by all drivers. */
export interface ModifyingMetrics {
  /** Counts one completed ControllerModifyVolume call. */
  called(of: {
    readonly driverName: string
    readonly isAboutClass: boolean
    readonly isAboutIo: boolean
    /** The gRPC code in Go spelling: `OK`, `InvalidArgument`. */
    readonly code: string
  }): void
}

export function createModifyingMetrics(registry: Registry): ModifyingMetrics {
  const registers = [registry]
  const pair = (name: string, what: string) => ({
    total: new Counter({
      name: `${name}_total`,
      help: `ControllerModifyVolume calls that change ${what}.`,
      labelNames: ['driver_name'],
      registers,
    }),
    errors: new Counter({
      name: `${name}_errors_total`,
      help: `Failed ControllerModifyVolume calls that change ${what}.`,
      labelNames: ['driver_name', 'grpc_status_code'],
      registers,
    }),
  })
  const classes = pair('controller_modify_volume', 'the attributes class of a volume')
  const io = pair('controller_update_io_provisioning', 'the iops or throughput of a volume')
  return {
    called({ driverName, isAboutClass, isAboutIo, code }) {
      for (const { total, errors } of [...(isAboutClass ? [classes] : []), ...(isAboutIo ? [io] : [])]) {
        total.inc({ driver_name: driverName })
        if (code !== 'OK') errors.inc({ driver_name: driverName, grpc_status_code: code })
      }
    },
  }
}
