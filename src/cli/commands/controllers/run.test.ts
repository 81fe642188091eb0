import { createServer } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { systemClock, systemRandom } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { runRemoteControllers } from './run.ts'

const PATIENCE = { timeout: 20_000, interval: 20 }

const aFreePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

async function start() {
  const program = await startProgramFixture()
  const { api, kubeconfig, signal } = program
  /** Returns a function that reads its metrics. */
  const controllers = async (): Promise<() => Promise<string>> => {
    const httpEndpoint = `127.0.0.1:${await aFreePort()}`
    const flags = { kubeconfig, controllers: 'quota', leaderElection: true, httpEndpoint }
    const deps = { clock: systemClock(), random: systemRandom(), log: silentLog, signal, env: {} }
    void program.runs(runRemoteControllers(flags, deps))
    return async () => (await fetch(`http://${httpEndpoint}/metrics`)).text()
  }
  return { api, controllers }
}

describe('stowage controllers', () => {
  it('SYS-11 counts its requests, and reports its leadership from the start', async () => {
    const { api, controllers } = await start()
    const leader = await controllers()
    await vi.waitFor(async () => {
      expect(await leader()).toContain('leader_election_master_status{name="stowage-controllers"} 1')
    }, PATIENCE)
    const standBy = await controllers()
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stowage-controllers'
    expect((await api.get(lease)).json.spec.holderIdentity).not.toBe('')
    await vi.waitFor(async () => {
      const metrics = await standBy()
      expect(metrics).toMatch(/^rest_client_requests_total\{method="GET",code="200",resource="leases"\} \d+$/m)
      expect(metrics).toContain('leader_election_master_status{name="stowage-controllers"} 0')
    }, PATIENCE)
  })
})
