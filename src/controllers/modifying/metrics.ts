// Counts ControllerModifyVolume calls and their failures, with the metric names of the KEPs. Their durations are in
// csi_sidecar_operations_seconds, as for all CSI calls.
import { Counter, type Registry } from 'prom-client'

/** One per process, shared by all drivers. */
export interface ModifyingMetrics {
  /** Counts one completed ControllerModifyVolume call. */
  countCall(call: {
    readonly driverName: string
    readonly isAboutClass: boolean
    readonly isAboutIo: boolean
    /** The gRPC code in Go spelling: `OK`, `InvalidArgument`. */
    readonly code: string
  }): void
}

export function createModifyingMetrics(registry: Registry): ModifyingMetrics {
  const registers = [registry]
  const createCounters = (name: string, subject: string) => ({
    total: new Counter({
      name: `${name}_total`,
      help: `ControllerModifyVolume calls that change ${subject}.`,
      labelNames: ['driver_name'],
      registers,
    }),
    errors: new Counter({
      name: `${name}_errors_total`,
      help: `Failed ControllerModifyVolume calls that change ${subject}.`,
      labelNames: ['driver_name', 'grpc_status_code'],
      registers,
    }),
  })
  const classes = createCounters('controller_modify_volume', 'the attributes class of a volume')
  const io = createCounters('controller_update_io_provisioning', 'the iops or throughput of a volume')
  return {
    countCall({ driverName, isAboutClass, isAboutIo, code }) {
      for (const { total, errors } of [...(isAboutClass ? [classes] : []), ...(isAboutIo ? [io] : [])]) {
        total.inc({ driver_name: driverName })
        if (code !== 'OK') errors.inc({ driver_name: driverName, grpc_status_code: code })
      }
    },
  }
}
