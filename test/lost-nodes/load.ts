// Creates and deletes claims on nodes in service, one after the other on each node, and counts those that were provisioned.
import { setTimeout as pause } from 'node:timers/promises'
import { SELECTED_NODE } from '../../src/volumes/names.ts'
import type { RunningServer } from '../helpers/server.ts'
import { NODES } from './cluster.ts'

export interface ProvisioningLoad {
  /** Number of claims that were provisioned, by node. */
  readonly counts: ReadonlyMap<string, number>
  /** Provisions no more claims on this node. Resolves when the node has none. */
  pause(node: string): Promise<void>
  /**
   * Provisions no more claims on this node and does not wait for one in progress, which ends when the node has returned or the
   * claim loses its node.
   */
  abandon(node: string): void
  resume(node: string): void
  readonly problems: readonly string[]
  /** Stops the load. Resolves when no node has a claim. */
  stop(): Promise<void>
}

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const POLL_INTERVAL_MS = 25

/** `className` names a class of the nodes' local driver with WaitForFirstConsumer. */
export function startLoad(server: RunningServer, className: string): ProvisioningLoad {
  const counts = new Map(NODES.map((node) => [node, 0]))
  const problems: string[] = []
  const active = new Map<string, { isStopped: boolean; done: Promise<void> }>()
  let sequence = 0

  const read = (path: string) => server.call('GET', path)
  async function deleteClaim(name: string): Promise<void> {
    await server.call('DELETE', `${CLAIMS}/${name}`)
    while ((await read(`${CLAIMS}/${name}`)).status !== 404) await pause(POLL_INTERVAL_MS)
  }

  async function provisionOne(node: string): Promise<void> {
    const name = `load-${sequence++}`
    const { status, text } = await server.call('POST', CLAIMS, {
      metadata: { name, annotations: { [SELECTED_NODE]: node } },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: className,
        resources: { requests: { storage: '300Mi' } },
      },
    })
    if (status !== 201) throw new Error(`POST ${name}: ${text}`)
    let claim = await read(`${CLAIMS}/${name}`)
    for (; claim.json.status?.phase !== 'Bound'; claim = await read(`${CLAIMS}/${name}`)) {
      // A claim whose volume was being provisioned on a lost node loses its selected node, and would wait for a pod.
      if (!claim.json.metadata.annotations?.[SELECTED_NODE]) return deleteClaim(name)
      await pause(POLL_INTERVAL_MS)
    }
    counts.set(node, counts.get(node)! + 1)
    await deleteClaim(name)
    const volume = `/api/v1/persistentvolumes/${claim.json.spec.volumeName}`
    while ((await read(volume)).status !== 404) await pause(POLL_INTERVAL_MS)
  }

  function resume(node: string): void {
    const previous = active.get(node)
    if (previous && !previous.isStopped) return
    const run = { isStopped: false, done: Promise.resolve() }
    run.done = (async () => {
      await previous?.done
      while (!run.isStopped) await provisionOne(node)
    })().catch((error: Error) => void problems.push(`load on ${node}: ${error.message}`))
    active.set(node, run)
  }
  const abandon = (node: string) => {
    const run = active.get(node)
    if (run) run.isStopped = true
  }

  return {
    counts,
    problems,
    resume,
    abandon,
    async pause(node) {
      abandon(node)
      await active.get(node)?.done
    },
    async stop() {
      for (const node of NODES) abandon(node)
      await Promise.all([...active.values()].map(({ done }) => done))
    },
  }
}
