// Performs what plans say people do: asks the server, past the network, and says in a word or two what came of it. Keeps
// every write that was acknowledged, for whoever judges whether the server kept its word.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { limitRangeKind } from '../../api/kinds/limit-range/limit-range.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { WriteRefusedError } from '../../store/index.ts'
import type { StoreView } from '../checkers/store-view.ts'
import { premadeVolume } from '../premade-volume.ts'
import { keyOf } from './draft.ts'
import { isNonsense } from './nonsense.ts'
import type { KindName, Named, ObjectText, PeopleAct } from './plan.ts'
import type { Stage } from './stage.ts'
import { DRIVERS } from './universe.ts'

export interface PeopleOptions {
  readonly stage: Pick<Stage, 'cluster' | 'drivers' | 'processes' | 'setGate'>
  readonly view: Pick<StoreView, 'claims' | 'volumes'>
  note(line: string): void
}

export interface People {
  /**
   * `done`, `refused 422`, `conflict`, `not there`, `exists`, `over quota`, `disk refused`, `no server`; or `BUG …`, for
   * what no server may answer. One that dies over it never answers.
   */
  perform(act: PeopleAct): Promise<string>
  readonly acknowledged: readonly Acknowledged[]
}

/** What the server said it had stored. */
export interface Acknowledged {
  readonly atMs: number
  readonly kind: KindName
  /** `namespace/name`, or the name where there are no namespaces. */
  readonly key: string
  readonly uid: string
  /** Of what was written; of what is gone, the last that was seen. */
  readonly resourceVersion: string
  readonly gone: boolean
}

const KINDS: Readonly<Record<KindName, Kind>> = {
  claim: persistentVolumeClaimKind,
  pod: podKind,
  volume: persistentVolumeKind,
  'storage class': storageClassKind,
  'attributes class': volumeAttributesClassKind,
  quota: resourceQuotaKind,
  'limit range': limitRangeKind,
  node: nodeKind,
  namespace: namespaceKind,
  'config map': configMapKind,
}

export function createPeople({ stage, view, note }: PeopleOptions): People {
  const { cluster } = stage
  const acknowledged: Acknowledged[] = []

  function acknowledge(kind: KindName, { metadata }: Readonly<KubeObject>, gone = false): void {
    const { namespace, name = '', uid = '', resourceVersion = '' } = metadata
    const key = keyOf({ ...(namespace ? { namespace } : {}), name })
    acknowledged.push({ atMs: cluster.world.nowMs, kind, key, uid, resourceVersion, gone })
  }

  async function create(client: Client, kind: KindName, object: ObjectText): Promise<string> {
    acknowledge(kind, await client.create(KINDS[kind], object as unknown as KubeObject))
    return isNonsense(object) ? 'BUG nonsense was stored' : 'done'
  }

  async function edit(client: Client, kind: KindName, of: Named, patch: object): Promise<string> {
    const left = await client.patch(KINDS[kind], of, { type: 'strategic', body: patch })
    if (left) acknowledge(kind, left) // nothing is left of what only waited for this
    return isNonsense(patch) ? 'BUG nonsense was stored' : 'done'
  }

  async function remove(client: Client, act: Extract<PeopleAct, { do: 'delete' }>): Promise<string> {
    const { kind, graceSeconds, propagation } = act
    const of = kind === 'volume' ? volumeOf(act.of) : act.of
    if (!of) return 'not there'
    const seen = await client.get(KINDS[kind], of)
    // Only this one: what has taken its name meanwhile is not what the person saw.
    const left = await client.delete(KINDS[kind], of, {
      uid: seen.metadata.uid,
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
      ...(propagation ? { propagation } : {}),
    })
    acknowledge(kind, left ?? seen, left === undefined)
    return 'done'
  }

  /** A volume by its own name, or that of a claim: the one it has, else the newest that it had. */
  function volumeOf({ namespace, name }: Named): Named | undefined {
    if (!namespace) return { name }
    const ofClaim = [...view.volumes.values()].filter(
      ({ spec }) => spec?.claimRef?.namespace === namespace && spec.claimRef.name === name,
    )
    const found = ofClaim.find(({ status }) => status?.phase === 'Bound') ?? ofClaim.at(-1)
    return found && { name: found.metadata.name ?? '' }
  }

  async function editVolume(client: Client, of: Named, patch: ObjectText): Promise<string> {
    const { claimRef } = (patch.spec ?? {}) as ObjectText
    if (claimRef === null) return giveBack(client, of, patch)
    if (claimRef) return reserve(client, of, patch)
    const volume = volumeOf(of)
    return volume ? edit(client, 'volume', volume, patch) : 'not there'
  }

  /** Only what is released, and only as it was seen: what a claim has is not taken from it. */
  async function giveBack(client: Client, of: Named, patch: ObjectText): Promise<string> {
    const released = [...view.volumes.values()].find(({ metadata, spec, status }) => {
      if (status?.phase !== 'Released') return false
      const { namespace, name } = spec?.claimRef ?? {}
      return of.namespace ? of.namespace === namespace && of.name === name : metadata.name === of.name
    })
    if (!released) return 'not there'
    const { name = '', uid, resourceVersion } = released.metadata
    return edit(client, 'volume', { name }, { ...patch, metadata: { uid, resourceVersion } })
  }

  /** Only what is free, and only as it was seen. */
  async function reserve(client: Client, { name }: Named, patch: ObjectText): Promise<string> {
    const volume = view.volumes.get(name)
    if (!volume || volume.spec?.claimRef) return 'not there'
    const { uid, resourceVersion } = volume.metadata
    return edit(client, 'volume', { name }, { ...patch, metadata: { uid, resourceVersion } })
  }

  async function goBack(client: Client, of: Named): Promise<string> {
    const claim = view.claims.get(keyOf(of))
    if (!claim) return 'not there'
    const { capacity, currentVolumeAttributesClassName } = claim.status ?? {}
    const wanted = claim.spec?.resources?.requests ?? {}
    const amounts = Object.keys(wanted).map((key) => [key, capacity?.[key] ?? (key === 'storage' ? wanted[key] : null)])
    const spec = {
      resources: { requests: Object.fromEntries(amounts) },
      volumeAttributesClassName: currentVolumeAttributesClassName ?? null,
    }
    return edit(client, 'claim', of, { metadata: { uid: claim.metadata.uid }, spec })
  }

  async function bringIn(client: Client, act: Extract<PeopleAct, { do: 'import' }>): Promise<string> {
    const { capacity } = (act.object.spec ?? {}) as { readonly capacity?: { readonly storage?: string } }
    premadeVolume(stage.drivers.get(act.driver)!, act.name, Number(quantityToBytes(capacity?.storage ?? '1Gi')))
    return create(client, 'volume', act.object)
  }

  /** Those who use gates are started anew, the controllers before the server as the manual has it. */
  function switchGate(gate: string, isOn: boolean): string {
    stage.setGate(gate, isOn)
    const servers = [...stage.processes].filter(([name]) => name === 'server')
    const others = [...stage.processes].filter(
      ([name]) => name !== 'server' && !name.startsWith('agent-') && !DRIVERS.some((one) => name === `driver ${one}`),
    )
    for (const [, process] of [...others, ...servers]) process.crash()
    for (const [, process] of [...servers, ...others]) process.start()
    return 'done'
  }

  async function attempt(act: PeopleAct): Promise<string> {
    if (act.do === 'switch gate') return switchGate(act.gate, act.isOn)
    const client = cluster.direct()
    if (!client) return 'no server'
    switch (act.do) {
      case 'create':
        return create(client, act.kind, act.object)
      case 'edit':
        return act.kind === 'volume' ? editVolume(client, act.of, act.patch) : edit(client, act.kind, act.of, act.patch)
      case 'delete':
        return remove(client, act)
      case 'go back':
        return goBack(client, act.of)
      case 'import':
        return bringIn(client, act)
    }
  }

  return {
    acknowledged,
    async perform(act) {
      try {
        return await attempt(act)
      } catch (error) {
        const outcome = outcomeOf(error)
        if (outcome.startsWith('BUG')) note(`people: ${(error as Error)?.stack ?? error}`)
        return outcome
      }
    },
  }
}

function outcomeOf(error: unknown): string {
  if (!(error instanceof ApiError)) return `BUG ${String(error)}`
  const { code, reason, message, cause } = error
  if (cause instanceof WriteRefusedError) return 'disk refused'
  if (code >= 500 && code !== 503) return `BUG ${code} ${message}`
  if (code === 403 && message.includes('exceeded quota')) return 'over quota'
  if (code === 404) return 'not there'
  if (code === 409) return reason === 'AlreadyExists' ? 'exists' : 'conflict'
  return `refused ${code}`
}
