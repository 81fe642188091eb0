// Metrics of the API server, its store and its process. Metrics that exist in Kubernetes have the same names.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ScrubStats, Store } from '../store/index.ts'

export interface RequestLabels {
  readonly verb: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
}

export interface ApiMetrics {
  readonly registry: Registry
  observeRequest(labels: RequestLabels, code: number, seconds: number): void
  /** Counts an open watch until the returned function is called. */
  recordWatchOpened(labels: RequestLabels): () => void
  readonly inFlight: { mutating: number; readOnly: number }
}

export function createApiMetrics(store: Store): ApiMetrics {
  const registry = new Registry()
  const registers = [registry]
  const labelNames = ['verb', 'group', 'version', 'resource', 'subresource'] as const
  const requestTotal = new Counter({
    name: 'apiserver_request_total',
    help: 'Completed requests by verb, resource and HTTP code.',
    labelNames: [...labelNames, 'code'],
    registers,
  })
  const duration = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Time from the arrival of a request to its response, without watches.',
    labelNames: [...labelNames],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const longRunning = new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Open watches.',
    labelNames: [...labelNames],
    registers,
  })
  const inFlight = { mutating: 0, readOnly: 0 }
  new Gauge({
    name: 'apiserver_current_inflight_requests',
    help: 'Requests in progress, without open watches.',
    labelNames: ['request_kind'],
    registers,
    collect() {
      this.set({ request_kind: 'mutating' }, inFlight.mutating)
      this.set({ request_kind: 'readOnly' }, inFlight.readOnly)
    },
  })
  const addGauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value())
      },
    })
  const commitDuration = new Histogram({
    name: 'stowage_store_commit_duration_seconds',
    help: 'Time to make one group commit durable.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  })
  const commitWrites = new Counter({
    name: 'stowage_store_commit_writes_total',
    help: 'Writes made durable. Divide by the number of group commits to get the writes per commit.',
    registers,
  })
  store.onCommit?.((seconds, writeCount) => {
    commitDuration.observe(seconds)
    commitWrites.inc(writeCount)
  })
  addGauge('stowage_store_revision', 'Newest durable revision.', () => store.revision)
  addGauge(
    'stowage_store_compacted_revision',
    'Changes up to this revision are compacted.',
    () => store.stats().compactedRevision,
  )
  addGauge('stowage_store_keys', 'Objects in the store.', () => store.stats().keys)
  addGauge(
    'stowage_store_history_entries',
    'Superseded versions kept for watches and reads at old revisions.',
    () => store.stats().historyEntries,
  )
  addGauge('stowage_store_history_bytes', 'Bytes of the superseded versions.', () => store.stats().historyBytes)
  addGauge('apiserver_storage_size_bytes', 'Size of the store on disk.', () => store.stats().bytesOnDisk)
  addGauge('stowage_store_watchers', 'Watches on the store.', () => store.stats().watchers)
  addGauge(
    'stowage_store_damaged_records',
    'Stored records that are known to be damaged.',
    () => store.stats().damagedRecords,
  )
  if (store.stats().scrub) addScrubMetrics(registry, () => store.stats().scrub!)
  addGauge('process_resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss())
  addGauge(
    'process_start_time_seconds',
    'Start time of the process, in seconds since the epoch.',
    () => performance.timeOrigin / 1000,
  )

  // prom-client hashes the labels on every call, so the series of each of the few combinations is cached.
  const seriesByLabels = new Map<string, { counters: Map<number, () => void>; observe: (seconds: number) => void }>()
  return {
    registry,
    inFlight,
    observeRequest(labels, code, seconds) {
      const id = `${labels.verb} ${labels.group}/${labels.version}/${labels.resource}/${labels.subresource}`
      let series = seriesByLabels.get(id)
      if (!series) {
        const timer = duration.labels({ ...labels })
        series = { counters: new Map(), observe: (value) => timer.observe(value) }
        seriesByLabels.set(id, series)
      }
      let increment = series.counters.get(code)
      if (!increment) {
        const counter = requestTotal.labels({ ...labels, code: String(code) })
        increment = () => counter.inc()
        series.counters.set(code, increment)
      }
      increment()
      if (labels.verb !== 'WATCH') series.observe(seconds)
    },
    recordWatchOpened(labels) {
      longRunning.inc({ ...labels })
      return () => longRunning.dec({ ...labels })
    },
  }
}

/** Adds metrics for the progress of the background reads that look for damaged records. */
function addScrubMetrics(registry: Registry, scrub: () => ScrubStats): void {
  const registers = [registry]
  new Counter({
    name: 'stowage_store_scrub_passes_total',
    help: 'Complete reads of the store that looked for damaged records.',
    registers,
    collect() {
      this.reset()
      this.inc(scrub().passes)
    },
  })
  new Counter({
    name: 'stowage_store_scrub_bytes_total',
    help: 'Bytes read to find damaged records.',
    registers,
    collect() {
      this.reset()
      this.inc(scrub().bytes)
    },
  })
  new Gauge({
    name: 'stowage_store_scrub_progress_ratio',
    help: 'Completed part of the current read of the store, from 0 to 1.',
    registers,
    collect() {
      this.set(scrub().progress)
    },
  })
}
