// Nodes for the attaching scenario: machines with agents that mount what is attached for the pods there, in the order a
// node agent must keep: in use is told first, and what is mounted is only what is still offered after that.
// A machine can lose its power: then nothing is mounted there any more, and nobody says so.
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Client } from '../../client/index.ts'
import { attachedVolumeNameOf } from '../../controllers/attaching/index.ts'
import type { Cluster } from '../cluster.ts'
import type { SimDriver } from '../driver.ts'

export interface SimNode {
  readonly name: string
  readonly isOn: boolean
  /** Handles of the volumes that are mounted. */
  readonly mounted: ReadonlySet<string>
  losePower(): void
  /** Boots; the agent starts anew. */
  start(): void
}

export const nodeIdOf = (nodeName: string): string => `id-${nodeName}`
export const handleOf = (claimName: string): string => `vol-${claimName}`

const LOOK_MS = 2_000

export function createSimNode(
  name: string,
  cluster: Cluster,
  driver: SimDriver,
  convict: (crime: string) => void,
): SimNode {
  const { world } = cluster
  const mounted = new Set<string>()
  let life = { isOn: true }

  async function work(own: { readonly isOn: boolean }): Promise<void> {
    while (own.isOn) {
      const client = cluster.direct()
      if (client) await look(client, own).catch(() => {}) // the server is down or failing: later again
      await world.clock.sleep(LOOK_MS)
    }
  }

  async function look(client: Client, own: { readonly isOn: boolean }): Promise<void> {
    const node = await register(client)
    const wanted = await wantedHere(client)
    if (!own.isOn) return
    for (const handle of mounted) if (!wanted.has(handle)) mounted.delete(handle)
    const offered = offeredBy(node)
    const toMount = [...wanted].filter((handle) => offered.has(handle))
    const inUse = [...new Set([...mounted, ...toMount])].map(nameOf).sort()
    const status = { conditions: [{ type: 'Ready', status: 'True' }], volumesInUse: inUse.length > 0 ? inUse : null }
    const said = await client.patch(
      nodeKind,
      { name },
      { type: 'strategic', body: { status } },
      { subresource: 'status' },
    )
    if (!own.isOn) return
    for (const handle of toMount) if (offeredBy(said).has(handle)) mount(handle)
  }

  function mount(handle: string): void {
    if (mounted.has(handle)) return
    mounted.add(handle)
    world.note(`${name} mounts ${handle}`)
    if (!driver.state().volumes[handle]?.attachments[nodeIdOf(name)]) {
      convict(`${handle} was mounted on ${name}, where it is not published`)
    }
  }

  async function register(client: Client): Promise<Readonly<Node>> {
    const drivers = [{ name: driver.settings.name, nodeID: nodeIdOf(name), topologyKeys: [] }]
    await client.create(csiNodeKind, { metadata: { name }, spec: { drivers } } as never).catch(() => {})
    return client.get(nodeKind, { name }).catch(() => client.create(nodeKind, { metadata: { name } } as never))
  }

  async function wantedHere(client: Client): Promise<Set<string>> {
    const { items } = await client.list(podKind)
    const here = items.filter(({ spec }) => spec?.nodeName === name)
    return new Set(
      here
        .flatMap(({ spec }) => spec?.volumes ?? [])
        .map((one) => handleOf(one.persistentVolumeClaim?.claimName ?? '')),
    )
  }

  const nameOf = (handle: string) => attachedVolumeNameOf({ driver: driver.settings.name, handle })
  const offeredBy = ({ status }: Readonly<Node>) =>
    new Set(status?.volumesAttached?.map((one) => one.name.slice(one.name.indexOf('^') + 1)))

  void work(life)
  return {
    name,
    mounted,
    get isOn() {
      return life.isOn
    },
    losePower() {
      if (!life.isOn) return
      world.note(`${name} loses its power`)
      life.isOn = false
      mounted.clear()
    },
    start() {
      if (life.isOn) return
      world.note(`${name} boots`)
      life = { isOn: true }
      void work(life)
    },
  }
}
