// Encodes a group of transactions as one etcd transaction, and decodes the changes of an etcd revision on every server.
//
// Each transaction of the group is nested in the etcd transaction and has its own comparisons, so it can fail alone. The
// writes of a group have sub-revisions from 0, which determine their revisions (revision-mapping.ts). A value contains its
// sub-revision. A delete has no value, so its sub-revision is the one after the preceding change of the same etcd revision;
// a later transaction that starts with a delete first writes a marker key with its sub-revision. If a group has several writes,
// the key `group` contains their number, so that all servers agree on the newest revision. The sub-revisions of a failed
// transaction remain unused.
//
// etcd evaluates the comparisons of all nested transactions before it executes any of them. This is equivalent to running them one
// by one, because no transaction reads or writes a key that an earlier one of the group writes (key-locks.ts).
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Entry, Revision, Write } from '../store.ts'
import type { ValueTransformer } from '../value-transformer.ts'
import type { CommitResult, ConditionalTransaction } from './commit-queue.ts'
import type { FeedChange } from './feed.ts'
import {
  Compare_CompareTarget,
  type KeyValue,
  type RequestOpSchema,
  type TxnRequestSchema,
  type TxnResponse,
} from './gen/etcd_pb.js'
import type { Layout } from './layout.ts'
import type { Change } from './replica.ts'
import type { RevisionMapping } from './revision-mapping.ts'
import { decodeValue, encodeValue } from './value-codec.ts'

export interface GroupContext {
  readonly layout: Layout
  readonly mapping: RevisionMapping
  /** Reads from the replica. If the replica is behind, the comparisons fail and nothing is written. */
  readonly get: (key: string) => Entry | undefined
  readonly transformer?: ValueTransformer | undefined
  /** Whether values are written with a checksum. */
  readonly hasChecksum: boolean
}

type TxnInit = MessageInitShape<typeof TxnRequestSchema>
type RequestInit = MessageInitShape<typeof RequestOpSchema>

// Encoding

export function encodeGroup(group: readonly ConditionalTransaction[], context: GroupContext): TxnInit {
  const { firstSubs, size } = subRevisionsOf(group)
  const transactions = group.map((transaction, index) =>
    encodeTransaction(transaction, firstSubs[index] as number, context),
  )
  const sizeRequest = size > 1 ? [putRequest(context.layout.group, Buffer.from(String(size)))] : []
  const [singleTransaction] = transactions
  if (singleTransaction && transactions.length === 1)
    return { ...singleTransaction, success: [...sizeRequest, ...singleTransaction.success] }
  return {
    success: [...sizeRequest, ...transactions.map((value) => ({ request: { case: 'requestTxn' as const, value } }))],
  }
}

/** Returns the sub-revision of each transaction's first write, and the number of writes in the group. */
function subRevisionsOf(group: readonly ConditionalTransaction[]): { firstSubs: number[]; size: number } {
  let size = 0
  const firstSubs = group.map(({ writes }) => {
    const firstSub = size
    size += writes.length
    return firstSub
  })
  return { firstSubs, size }
}

function encodeTransaction({ reads, writes }: ConditionalTransaction, firstSub: number, context: GroupContext) {
  const { layout, mapping, get, transformer } = context
  const createSubOf = (key: string, sub: number) => {
    if (!reads.get(key)) return sub
    return mapping.subOf(get(key)?.createRevision ?? 0)
  }
  const requestOf = (write: Write, index: number): RequestInit => {
    const sub = firstSub + index
    if ('delete' in write) {
      return { request: { case: 'requestDeleteRange', value: { key: layout.etcdKey(write.delete) } } }
    }
    const { put, expiresAtMs } = write
    const value = transformer ? transformer.encode(put, write.value) : write.value
    const storedBytes = encodeValue(put, { value, expiresAtMs, sub, createSub: createSubOf(put, sub) }, context)
    return putRequest(layout.etcdKey(put), storedBytes)
  }
  const needsMarker = firstSub > 0 && writes[0] !== undefined && 'delete' in writes[0]
  const marker = needsMarker ? [putRequest(layout.subKey(firstSub), new Uint8Array(0))] : []
  return {
    compare: [...reads].map(([key, revision]) => ({
      key: layout.etcdKey(key),
      target: Compare_CompareTarget.MOD,
      targetUnion: {
        case: 'modRevision' as const,
        value: BigInt(revision === 0 ? 0 : mapping.etcdRevisionOf(revision)),
      },
    })),
    success: [...marker, ...writes.map(requestOf)],
  }
}

const putRequest = (key: Uint8Array, value: Uint8Array) => ({
  request: { case: 'requestPut' as const, value: { key, value } },
})

// Decoding

/** Returns the result of each transaction of a group. */
export function decodeCommits(
  group: readonly ConditionalTransaction[],
  response: TxnResponse,
  mapping: RevisionMapping,
): CommitResult[] {
  const { header, succeeded, responses } = response
  if (group.length === 1) return [{ isCommitted: succeeded, revision: mapping.revisionOf(header?.revision) }]
  return subRevisionsOf(group).firstSubs.map((firstSub, index) => {
    const result = responses[1 + index]?.response // responses[0] belongs to the put of `group`
    const isCommitted = result?.case === 'responseTxn' && result.value.succeeded
    return { isCommitted, revision: mapping.revisionOf(header?.revision, firstSub) }
  })
}

/** Decodes the changes of one or more complete etcd revisions. Returns them with the newest revision. */
export function decodeChanges(
  events: readonly FeedChange[],
  { layout, mapping }: Pick<GroupContext, 'layout' | 'mapping'>,
): { changes: Change[]; revision: Revision } {
  const changes: Change[] = []
  let etcdRevision = 0
  let nextSub = 0
  let size = 1
  for (const { is, kv, revision } of events) {
    if (revision !== etcdRevision) [etcdRevision, nextSub, size] = [revision, 0, 1]
    const key = layout.storeKey(kv.key)
    if (key === undefined) {
      nextSub = layout.subOf(kv.key) ?? nextSub
      if (isGroup(kv, layout)) size = sizeOf(kv)
    } else if (is === 'put') {
      changes.push(decodeChange(kv, key, mapping))
      nextSub = mapping.subOf((changes.at(-1) as Change).revision) + 1
    } else {
      const deleteRevision = mapping.revisionOf(revision, nextSub++)
      changes.push({ key, revision: deleteRevision, createRevision: deleteRevision })
    }
  }
  return { changes, revision: mapping.revisionOf(etcdRevision, size - 1) }
}

export function decodeChange(kv: KeyValue, key: string, mapping: RevisionMapping): Change {
  const { value, expiresAtMs, sub, createSub, damage } = decodeValue(key, kv.value)
  return {
    key,
    ...(damage ? { damage } : {}),
    revision: mapping.revisionOf(kv.modRevision, sub),
    createRevision: mapping.revisionOf(kv.createRevision, createSub),
    value,
    expiresAtMs,
  }
}

/** Returns the last revision of an etcd revision, based on the key `group` at that etcd revision. */
export function lastRevisionIn(etcdRevision: number, group: KeyValue | undefined, mapping: RevisionMapping): Revision {
  const size = group && Number(group.modRevision) === etcdRevision ? sizeOf(group) : 1
  return mapping.revisionOf(etcdRevision, size - 1)
}

const isGroup = (kv: KeyValue, { group }: Layout) => Buffer.compare(kv.key, group) === 0
const sizeOf = (group: KeyValue) => Number(Buffer.from(group.value).toString())
