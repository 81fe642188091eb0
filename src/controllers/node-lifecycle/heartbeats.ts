// Stores the time of each node's last report by the clock of this process: the time at which a renewed lease or a new heartbeat
// was observed. Timestamps by the clocks of other processes are compared for equality only.
//
// Only nodes with an agent are monitored: those with a lease, and those whose heartbeat has changed. Holds one entry per
// node or lease, removed when both are deleted.
import type { Stored } from '../../api/kind.ts'
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { heartbeatOf } from './conditions.ts'

interface NodeRecord {
  /** The uid, holder and renewTime of the lease when it was last observed. */
  lease: string | undefined
  /** The uid of the Node object. */
  uid: string | undefined
  heartbeat: string | undefined
  isMonitored: boolean
  reportedMs: number
}

export class Heartbeats {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #records = new Map<string, NodeRecord>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  observeLease({ metadata, spec }: Readonly<Stored<Lease>>): void {
    const record = this.#record(metadata.name)
    const lease = JSON.stringify([metadata.uid, spec?.holderIdentity, spec?.renewTime])
    if (record.lease === lease) return
    record.lease = lease
    record.isMonitored = true
    record.reportedMs = this.#clock.monotonicMs()
  }

  observeNode(node: Readonly<Stored<Node>>): void {
    const { name, uid } = node.metadata
    const record = this.#record(name)
    const heartbeat = heartbeatOf(node)
    if (record.uid !== uid) {
      record.uid = uid
      record.heartbeat = heartbeat
      record.isMonitored = record.lease !== undefined
      record.reportedMs = this.#clock.monotonicMs()
    } else if (heartbeat !== undefined && heartbeat !== record.heartbeat) {
      // The creator of the node may have written the first heartbeat; an agent writes the second one.
      if (record.heartbeat !== undefined) record.isMonitored = true
      record.heartbeat = heartbeat
      record.reportedMs = this.#clock.monotonicMs()
    }
  }

  /** Restarts the grace period, because reports may have been missed while the server did not respond. */
  restartGrace(name: string): void {
    const record = this.#records.get(name)
    if (record) record.reportedMs = this.#clock.monotonicMs()
  }

  /** Removes the lease. Its node stays monitored. */
  deleteLease(name: string): void {
    const record = this.#records.get(name)
    if (!record) return
    record.lease = undefined
    if (record.uid === undefined) this.#records.delete(name)
  }

  deleteNode(name: string): void {
    const record = this.#records.get(name)
    if (!record) return
    record.uid = undefined
    record.heartbeat = undefined
    if (record.lease === undefined) this.#records.delete(name)
  }

  isMonitored(name: string): boolean {
    return this.#records.get(name)?.isMonitored ?? false
  }

  silenceMs(name: string): number {
    const record = this.#records.get(name)
    return record ? this.#clock.monotonicMs() - record.reportedMs : 0
  }

  get size(): number {
    return this.#records.size
  }

  #record(name: string): NodeRecord {
    const existingRecord = this.#records.get(name)
    if (existingRecord) return existingRecord
    const reportedMs = this.#clock.monotonicMs()
    const record: NodeRecord = {
      lease: undefined,
      uid: undefined,
      heartbeat: undefined,
      isMonitored: false,
      reportedMs,
    }
    this.#records.set(name, record)
    return record
  }
}
