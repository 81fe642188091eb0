// Tests scheduling with the scheduler, the controllers, the provisioner and the capacity cleaner in their own processes: the
// API server is killed or frozen for ten seconds, and a node is removed with its driver.
import { afterEach, describe, expect, it } from 'vitest'
import {
  CAPACITIES,
  CSI_NODES,
  claimSpec,
  createClass,
  createNode,
  createPod,
  driver,
  list,
  listDriverVolumes,
  NODES,
  pollUntil,
  post,
  remove,
  restartServer,
  server,
  startCommand,
  startServerWithDriver,
  stopAll,
  waitForCapacities,
  waitUntilScheduled,
} from './helpers/pools-cluster.ts'

afterEach(stopAll)

const OUTAGE_MS = 10_000
/**
 * After an outage, the scheduler may receive the report of a volume before the claim. The volume then stays reserved for two
 * minutes (REPORT_TIMEOUT_MS in reservations.ts), and the last pod, for which the capacity is just enough, waits for it.
 */
const TIMEOUT_MS = 300_000
const waitForOutage = () => new Promise((resolve) => setTimeout(resolve, OUTAGE_MS))

const OUTAGES: Readonly<Record<string, () => Promise<void>>> = {
  async killed() {
    await server.kill()
    await waitForOutage()
    await restartServer()
  },
  async frozen() {
    process.kill(server.pid, 'SIGSTOP')
    await waitForOutage()
    process.kill(server.pid, 'SIGCONT')
  },
}

describe('scheduling with separate processes', () => {
  it.each(Object.entries(OUTAGES))(
    'CAP-17 CAP-20 resumes after the API server was %s for ten seconds, and recreates no capacity object',
    async (_name, outage) => {
      const hosts = ['n1', 'n2', 'n3']
      await startServerWithDriver({ segments: hosts.map((name) => `host=${name}`), sizeGi: 20 })
      await startCommand(['controllers', '--no-leader-election'])
      await startCommand(['scheduler', '--no-leader-election'])
      await startCommand([
        ...['provisioner', '--csi-address', driver.endpoint, '--kube-api-qps', '-1', '--strict-topology', 'true'],
        ...['--enable-capacity', 'central', '--capacity-ownerref-level', '-1', '--kube-api-capacity-qps', '-1'],
      ])
      await createClass('local')
      for (const name of hosts) await createNode(name, { host: name })
      await waitForCapacities(...hosts.map((name) => `local ${name}: 20Gi`))
      const listUids = async () => (await list(CAPACITIES)).map(({ metadata }) => metadata.uid).sort()
      const uidsBefore = await listUids()

      const pods = Array.from({ length: 60 }, (_, index) => `p${index}`)
      for (const name of pods.slice(0, 40)) await createPod(name, { ephemeral: { scratch: claimSpec(1, 'local') } })
      await outage()
      for (const name of pods.slice(40)) await createPod(name, { ephemeral: { scratch: claimSpec(1, 'local') } })
      for (const name of pods) await waitUntilScheduled(name)
      expect(await listDriverVolumes()).toHaveLength(pods.length)
      await waitForCapacities(...hosts.map((name) => `local ${name}: 0`))
      expect(await listUids()).toEqual(uidsBefore)
      expect((await driver.control.inspect()).overlaps).toEqual([])
    },
    TIMEOUT_MS,
  )

  it('CAP-5 CAP-9 deletes the capacity object of a node that was removed with its driver', async () => {
    await startServerWithDriver({ segments: ['host=n1'], sizeGi: 20 })
    await createClass('local')
    for (const name of ['n1', 'n2']) await createNode(name, { host: name })
    const provisioner = await startCommand(
      [
        ...['provisioner', '--csi-address', driver.endpoint, '--node-deployment', '--enable-capacity', 'local'],
        ...['--capacity-ownerref-level', '-1'],
      ],
      { NODE_NAME: 'n1' },
    )
    await waitForCapacities('local n1: 20Gi')
    const labels = (node: string) => ({
      'csi.storage.k8s.io/drivername': 'pools.example.com',
      'csi.storage.k8s.io/managed-by': `external-provisioner-${node}`,
    })
    const otherNodeCapacity = {
      storageClassName: 'local',
      nodeTopology: { matchLabels: { host: 'n2' } },
      capacity: '7Gi',
    }
    await post('/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities', {
      metadata: { name: 'of-n2', labels: labels('n2') },
      ...otherNodeCapacity,
    })
    await startCommand([
      'capacity-cleanup',
      '--driver-name',
      'pools.example.com',
      '--gone-for',
      '1s',
      '--no-leader-election',
    ])
    await provisioner.stop()
    await remove(`${CSI_NODES}/n1`)
    await remove(`${NODES}/n1`)
    await waitForCapacities('local n2: 7Gi') // n2 still has the driver
    await remove(`${CSI_NODES}/n2`)
    await pollUntil(async () => (await list(CAPACITIES)).length === 0)
  })
})
