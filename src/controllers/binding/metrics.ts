// Metrics of the binder, under the names of kube-controller-manager. Volumes and claims are counted as the caches change
// (group-counts.ts), because a scrape that reads all of them would stop a server with a million for seconds.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { claimClassName, volumeClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { volumeSources } from '../../api/kinds/volume/volume-source-rules.ts'
import type { Cache } from '../../runtime/index.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { GroupCounts } from './group-counts.ts'

export interface BindingMetrics {
  /** Counts the volumes and claims of these caches until the returned function is called. */
  collectFrom(caches: CollectedCaches): () => void
  countClassAssignment(hasSucceeded: boolean): void
  countOperationError(plugin: string, operation: string): void
  observeOperation(plugin: string, operation: string, seconds: number): void
}

interface CollectedCaches {
  readonly claims: Pick<Cache<PersistentVolumeClaim>, 'subscribe'>
  readonly volumes: Pick<Cache<PersistentVolume>, 'subscribe'>
}

const OPERATION_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600]

export function createBindingMetrics(registry: Registry): BindingMetrics {
  const registers = [registry]
  let counts: Counts | undefined

  const addGauge = (
    name: string,
    help: string,
    labelNames: string[],
    collectSamples: (add: Add, from: Counts) => void,
  ) =>
    new Gauge({
      name: `pv_collector_${name}`,
      help,
      labelNames,
      registers,
      collect() {
        this.reset() // removes label values that no longer occur
        if (counts) collectSamples((labels, count) => this.inc(labels, count), counts)
      },
    })
  addGauge('total_pv_count', 'Number of persistent volumes.', ['plugin_name', 'volume_mode'], (add, { volumes }) => {
    for (const { group, count } of volumes.groups()) add({ plugin_name: group.plugin, volume_mode: group.mode }, count)
  })
  for (const state of ['bound', 'unbound'] as const) {
    addGauge(`${state}_pv_count`, `Number of ${state} persistent volumes.`, ['storage_class'], (add, { volumes }) => {
      for (const { group, count } of volumes.groups())
        if (group.state === state) add({ storage_class: group.className }, count)
    })
    const labels = ['namespace', 'storage_class', 'volume_attributes_class']
    addGauge(`${state}_pvc_count`, `Number of ${state} persistent volume claims.`, labels, (add, { claims }) => {
      for (const { group, count } of claims.groups()) {
        if (group.state !== state) continue
        const { namespace, className, attributesClass } = group
        add({ namespace, storage_class: className, volume_attributes_class: attributesClass }, count)
      }
    })
  }

  const assignments = new Counter({
    name: 'retroactive_storageclass_total',
    help: 'Attempts to assign the default class to a claim that was created without a class.',
    registers,
  })
  const assignmentErrors = new Counter({
    name: 'retroactive_storageclass_errors_total',
    help: 'Failed attempts to assign the default class to a claim.',
    registers,
  })
  const operationOptions = { labelNames: ['plugin_name', 'operation_name'], registers }
  const operationErrors = new Counter({
    name: 'volume_operation_errors_total',
    help: 'Failed operations on volumes.',
    ...operationOptions,
  })
  const operationSeconds = new Histogram({
    name: 'volume_operation_total_seconds',
    help: 'Seconds from the request for a volume until it is bound, and from its release until it is deleted.',
    buckets: OPERATION_SECONDS,
    ...operationOptions,
  })

  return {
    collectFrom({ claims, volumes }) {
      const newCounts = { claims: new GroupCounts(groupOfClaim), volumes: new GroupCounts(groupOfVolume) }
      const stops = [claims.subscribe(newCounts.claims), volumes.subscribe(newCounts.volumes)]
      counts = newCounts
      return () => {
        for (const stop of stops) stop()
        if (counts === newCounts) counts = undefined
      }
    },
    countClassAssignment(hasSucceeded) {
      assignments.inc()
      if (!hasSucceeded) assignmentErrors.inc()
    },
    countOperationError: (plugin, operation) => operationErrors.inc({ plugin_name: plugin, operation_name: operation }),
    observeOperation: (plugin, operation, seconds) =>
      operationSeconds.observe({ plugin_name: plugin, operation_name: operation }, seconds),
  }
}

type Add = (labels: Record<string, string>, count: number) => void

interface Counts {
  readonly claims: GroupCounts<Claim, ReturnType<typeof groupOfClaim>>
  readonly volumes: GroupCounts<Volume, ReturnType<typeof groupOfVolume>>
}

const groupOfClaim = (claim: Claim) => ({
  state: stateOf(claim),
  namespace: claim.metadata.namespace ?? '',
  className: claimClassName(claim) ?? '',
  attributesClass: claim.spec?.volumeAttributesClassName ?? '',
})

const groupOfVolume = (volume: Volume) => ({
  state: stateOf(volume),
  plugin: pluginOf(volume),
  mode: volume.spec?.volumeMode ?? '',
  className: volumeClassName(volume),
})

const stateOf = ({ status }: Claim | Volume) => (status?.phase === 'Bound' ? 'bound' : 'unbound')

/** Returns the Kubernetes plugin name, which depends on whether the source is a CSI driver or an in-tree plugin. */
function pluginOf({ spec = {} }: Volume): string {
  if (spec.csi) return `kubernetes.io/csi:${spec.csi.driver}`
  const [source] = volumeSources(spec)
  return source ? `kubernetes.io/${PLUGIN_NAMES[source] ?? source}` : 'N/A'
}

/** In-tree plugin names that differ from the name of the source field. */
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
