import { createServer } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { systemClock, systemRandom } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { parseControllers, runRemoteControllers } from './run.ts'

const WAIT = { timeout: 20_000, interval: 20 }

const findFreePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

async function startCluster() {
  const program = await startProgramFixture()
  const { api, kubeconfig, signal } = program
  /** Starts the controllers and returns a function that reads their metrics. */
  const startControllers = async (): Promise<() => Promise<string>> => {
    const httpEndpoint = `127.0.0.1:${await findFreePort()}`
    const flags = { kubeconfig, controllers: 'quota', leaderElection: true, httpEndpoint }
    const deps = { clock: systemClock(), random: systemRandom(), log: silentLog, signal, env: {} }
    void program.track(runRemoteControllers(flags, deps))
    return async () => (await fetch(`http://${httpEndpoint}/metrics`)).text()
  }
  return { api, startControllers }
}

describe('parseControllers', () => {
  it('CAP-9 enables capacity-cleanup by default', () => {
    expect(parseControllers()).toContain('capacity-cleanup')
  })
})

describe('stowage controllers', () => {
  it('SYS-11 counts its requests and reports its leadership from the start', async () => {
    const { api, startControllers } = await startCluster()
    const readLeaderMetrics = await startControllers()
    await vi.waitFor(async () => {
      expect(await readLeaderMetrics()).toContain('leader_election_master_status{name="stowage-controllers"} 1')
    }, WAIT)
    const readStandbyMetrics = await startControllers()
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stowage-controllers'
    expect((await api.get(lease)).json.spec.holderIdentity).not.toBe('')
    await vi.waitFor(async () => {
      const metrics = await readStandbyMetrics()
      expect(metrics).toMatch(/^rest_client_requests_total\{method="GET",code="200",resource="leases"\} \d+$/m)
      expect(metrics).toContain('leader_election_master_status{name="stowage-controllers"} 0')
    }, WAIT)
  })
})
