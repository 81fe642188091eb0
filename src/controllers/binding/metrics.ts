// Metrics of the binder, under the names of kube-controller-manager. Volumes and claims are counted from the caches when
// metrics are scraped.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { claimClassName, volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { volumeSources } from '../../api/kinds/volume/volume-source-rules.ts'
import type { Cache } from '../../runtime/index.ts'
import type { Volume } from '../../volumes/matching.ts'

export interface BindingMetrics {
  /** Counts the volumes and claims of these caches until the returned function is called. */
  count(caches: CountedCaches): () => void
  assignedDefaultClass(succeeded: boolean): void
  operationFailed(plugin: string, operation: string): void
  operationTook(plugin: string, operation: string, seconds: number): void
}

export interface CountedCaches {
  readonly claims: Pick<Cache<PersistentVolumeClaim>, 'list'>
  readonly volumes: Pick<Cache<PersistentVolume>, 'list'>
}

const OPERATION_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600]

export function createBindingMetrics(registry: Registry): BindingMetrics {
  const registers = [registry]
  let counted: CountedCaches | undefined

  const counts = (name: string, help: string, labelNames: string[], each: (add: Add, caches: CountedCaches) => void) =>
    new Gauge({
      name: `pv_collector_${name}`,
      help,
      labelNames,
      registers,
      collect() {
        this.reset() // drop label values that no longer occur
        if (counted) each((labels) => this.inc(labels), counted)
      },
    })
  counts('total_pv_count', 'Number of persistent volumes.', ['plugin_name', 'volume_mode'], (add, { volumes }) => {
    for (const one of volumes.list()) add({ plugin_name: pluginOf(one), volume_mode: one.spec?.volumeMode ?? '' })
  })
  for (const isBound of [true, false]) {
    const word = isBound ? 'bound' : 'unbound'
    counts(`${word}_pv_count`, `Number of ${word} persistent volumes.`, ['storage_class'], (add, { volumes }) => {
      for (const one of volumes.list()) {
        if ((one.status?.phase === 'Bound') === isBound) add({ storage_class: volumeClassName(one) })
      }
    })
    const labels = ['namespace', 'storage_class', 'volume_attributes_class']
    counts(`${word}_pvc_count`, `Number of ${word} persistent volume claims.`, labels, (add, { claims }) => {
      for (const one of claims.list()) {
        if ((one.status?.phase === 'Bound') !== isBound) continue
        add({
          namespace: one.metadata.namespace ?? '',
          storage_class: claimClassName(one) ?? '',
          volume_attributes_class: one.spec?.volumeAttributesClassName ?? '',
        })
      }
    })
  }

  const assigned = new Counter({
    name: 'retroactive_storageclass_total',
    help: 'Attempts to assign the default class to a claim that was created without a class.',
    registers,
  })
  const notAssigned = new Counter({
    name: 'retroactive_storageclass_errors_total',
    help: 'Failed attempts to assign the default class to a claim.',
    registers,
  })
  const perOperation = { labelNames: ['plugin_name', 'operation_name'], registers }
  const failed = new Counter({
    name: 'volume_operation_errors_total',
    help: 'Failed operations on volumes; each is retried.',
    ...perOperation,
  })
  const took = new Histogram({
    name: 'volume_operation_total_seconds',
    help: 'Seconds from the request for a volume until it is bound, and from its release until it is deleted.',
    buckets: OPERATION_SECONDS,
    ...perOperation,
  })

  return {
    count(caches) {
      counted = caches
      return () => {
        if (counted === caches) counted = undefined
      }
    },
    assignedDefaultClass(succeeded) {
      assigned.inc()
      if (!succeeded) notAssigned.inc()
    },
    operationFailed: (plugin, operation) => failed.inc({ plugin_name: plugin, operation_name: operation }),
    operationTook: (plugin, operation, seconds) =>
      took.observe({ plugin_name: plugin, operation_name: operation }, seconds),
  }
}

type Add = (labels: Record<string, string>) => void

/** The names of the in-tree plugins: CSI volumes by driver, others by source. */
function pluginOf({ spec = {} }: Volume): string {
  if (spec.csi) return `kubernetes.io/csi:${spec.csi.driver}`
  const [source] = volumeSources(spec)
  return source ? `kubernetes.io/${PLUGIN_NAMES[source] ?? source}` : 'N/A'
}

/** Plugins that are not named after their field. */
const PLUGIN_NAMES: Readonly<Record<string, string>> = {
  awsElasticBlockStore: 'aws-ebs',
  azureDisk: 'azure-disk',
  azureFile: 'azure-file',
  gcePersistentDisk: 'gce-pd',
  hostPath: 'host-path',
  local: 'local-volume',
  portworxVolume: 'portworx-volume',
  vsphereVolume: 'vsphere-volume',
}
