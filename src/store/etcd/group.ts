// How a group of transactions looks in etcd, and how every server tells its members apart again.
// A group is one etcd transaction with its members nested in it: each has its own comparisons, and fails alone. Their
// writes have places, from 0, which make their revisions (numbering.ts). Values carry their place. A delete carries
// nothing: it has the place after that of the change before it in the same revision of etcd, and a member that begins
// with a delete begins with a note of its place instead. If there are several places, `group` tells how many, so all
// servers agree on the newest revision; those of a member that failed stay empty.
//
// etcd compares for all members before it writes for any. That is as good as one after the other, because members stand
// in the order in which they were decided, and none has read or written a key that one before it writes (key-locks.ts).
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Entry, Revision, Write } from '../store.ts'
import type { Commit, Member } from './commit-queue.ts'
import type { FeedChange } from './feed.ts'
import {
  Compare_CompareTarget,
  type KeyValue,
  type RequestOpSchema,
  type TxnRequestSchema,
  type TxnResponse,
} from './gen/etcd_pb.js'
import type { Layout } from './layout.ts'
import type { Numbering } from './numbering.ts'
import type { Change } from './replica.ts'
import { decodeValue, encodeValue } from './value-codec.ts'

export interface GroupContext {
  readonly layout: Layout
  readonly numbering: Numbering
  /** The replica's; if it is late, the comparisons fail and nothing is written. */
  readonly get: (key: string) => Entry | undefined
}

type TxnInit = MessageInitShape<typeof TxnRequestSchema>
type RequestInit = MessageInitShape<typeof RequestOpSchema>

// Writing

export function groupRequest(group: readonly Member[], context: GroupContext): TxnInit {
  const { firsts, places } = placesIn(group)
  const members = group.map((member, at) => memberRequest(member, firsts[at] as number, context))
  const count = places > 1 ? [putRequest(context.layout.group, Buffer.from(String(places)))] : []
  const [lone] = members
  if (lone && members.length === 1) return { ...lone, success: [...count, ...lone.success] }
  return { success: [...count, ...members.map((value) => ({ request: { case: 'requestTxn' as const, value } }))] }
}

/** The place of each member's first write, and how many there are in all. */
function placesIn(group: readonly Member[]): { firsts: number[]; places: number } {
  let places = 0
  const firsts = group.map(({ writes }) => {
    const first = places
    places += writes.length
    return first
  })
  return { firsts, places }
}

export function groupCommits(group: readonly Member[], response: TxnResponse, numbering: Numbering): Commit[] {
  const { header, succeeded, responses } = response
  if (group.length === 1) return [{ isDone: succeeded, revision: numbering.revisionOf(header?.revision) }]
  return placesIn(group).firsts.map((first, at) => {
    const member = responses[1 + at]?.response // after that of `group`
    const isDone = member?.case === 'responseTxn' && member.value.succeeded
    return { isDone, revision: numbering.revisionOf(header?.revision, first) }
  })
}

function memberRequest({ reads, writes }: Member, first: number, context: GroupContext) {
  const { layout, numbering, get } = context
  const createPlaceOf = (key: string, place: number) => {
    if (!reads.get(key)) return place
    return numbering.placeOf(get(key)?.createRevision ?? 0)
  }
  const requestOf = (write: Write, at: number): RequestInit => {
    const place = first + at
    if ('delete' in write) {
      return { request: { case: 'requestDeleteRange', value: { key: layout.etcdKey(write.delete) } } }
    }
    const { put, value, expiresAtMs } = write
    const stored = encodeValue({ value, expiresAtMs, place, createPlace: createPlaceOf(put, place) })
    return putRequest(layout.etcdKey(put), stored)
  }
  const needsNote = first > 0 && writes[0] !== undefined && 'delete' in writes[0]
  const note = needsNote ? [putRequest(layout.placeKey(first), new Uint8Array(0))] : []
  return {
    compare: [...reads].map(([key, revision]) => ({
      key: layout.etcdKey(key),
      target: Compare_CompareTarget.MOD,
      targetUnion: {
        case: 'modRevision' as const,
        value: BigInt(revision === 0 ? 0 : numbering.etcdRevisionOf(revision)),
      },
    })),
    success: [...note, ...writes.map(requestOf)],
  }
}

const putRequest = (key: Uint8Array, value: Uint8Array) => ({
  request: { case: 'requestPut' as const, value: { key, value } },
})

// Reading

/** What whole revisions of etcd have changed, and the newest revision after them. There must be some. */
export function readChanges(
  events: readonly FeedChange[],
  { layout, numbering }: Omit<GroupContext, 'get'>,
): { changes: Change[]; revision: Revision } {
  const changes: Change[] = []
  let etcdRevision = 0
  let nextPlace = 0
  let places = 1
  for (const { is, kv, revision } of events) {
    if (revision !== etcdRevision) [etcdRevision, nextPlace, places] = [revision, 0, 1]
    const key = layout.storeKey(kv.key)
    if (key === undefined) {
      nextPlace = layout.placeOf(kv.key) ?? nextPlace
      if (isGroup(kv, layout)) places = placesOf(kv)
    } else if (is === 'put') {
      changes.push(readValue(kv, key, numbering))
      nextPlace = numbering.placeOf((changes.at(-1) as Change).revision) + 1
    } else {
      const at = numbering.revisionOf(revision, nextPlace++)
      changes.push({ key, revision: at, createRevision: at })
    }
  }
  return { changes, revision: numbering.revisionOf(etcdRevision, places - 1) }
}

export function readValue(kv: KeyValue, key: string, numbering: Numbering): Change {
  const { value, expiresAtMs, place, createPlace } = decodeValue(kv.value)
  return {
    key,
    revision: numbering.revisionOf(kv.modRevision, place),
    createRevision: numbering.revisionOf(kv.createRevision, createPlace),
    value,
    expiresAtMs,
  }
}

/** The last of the store's revisions in one of etcd's, by what `group` was then. */
export function lastRevisionIn(etcdRevision: number, group: KeyValue | undefined, numbering: Numbering): Revision {
  const places = group && Number(group.modRevision) === etcdRevision ? placesOf(group) : 1
  return numbering.revisionOf(etcdRevision, places - 1)
}

const isGroup = (kv: KeyValue, { group }: Layout) => Buffer.compare(kv.key, group) === 0
const placesOf = (group: KeyValue) => Number(Buffer.from(group.value).toString())
