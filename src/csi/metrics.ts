// Metrics for the duration and status code of CSI calls, with the metric names of the Kubernetes CSI sidecars.
import { Histogram, type Registry } from 'prom-client'
import { type CsiCode, goNameOf } from './errors.ts'

export interface CallObserver {
  observeCall(call: {
    readonly driverName: string
    /** The path of the method, such as `/csi.v1.Controller/CreateVolume`. */
    readonly method: string
    readonly code: CsiCode
    readonly seconds: number
    /** The volume ID of the request, or its name: of the volume for CreateVolume, of the snapshot for CreateSnapshot. */
    readonly volume?: string
    /** A failed call's message. */
    readonly message?: string
  }): void
}

/** Creates the metrics of connectDriver. Several connections can share them. */
export const createCsiMetrics = (registry: Registry): CallObserver =>
  createCallHistogram(registry, 'csi_sidecar_operations_seconds', 'Duration of calls to a CSI driver.')

/** Creates the metrics of serveDriver. */
export const createCsiPluginMetrics = (registry: Registry): CallObserver =>
  createCallHistogram(registry, 'csi_plugin_operations_seconds', 'Duration of calls that this CSI driver served.')

const BUCKETS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600]

function createCallHistogram(registry: Registry, name: string, help: string): CallObserver {
  const histogram = new Histogram({
    name,
    help,
    labelNames: ['driver_name', 'method_name', 'grpc_status_code'],
    buckets: BUCKETS_SECONDS,
    registers: [registry],
  })
  return {
    observeCall: ({ driverName, method, code, seconds }) =>
      histogram.observe({ driver_name: driverName, method_name: method, grpc_status_code: goNameOf(code) }, seconds),
  }
}
