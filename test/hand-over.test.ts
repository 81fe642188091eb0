// Tests how two processes of `stowage controllers` replace each other: when the leader stops, is killed, or freezes and thaws.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/stowage-controllers'

describe('two processes of controllers', () => {
  let dir: string
  let server: RunningServer
  const daemons: Daemon[] = []

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stowage-hand-over-'))
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server' })
    for (const name of ['a', 'b']) {
      const args = ['controllers', '--kubeconfig', server.kubeconfig, '--leader-election-lease-duration', '4s']
      const isReady = ({ stderr }: { stderr: string }) => stderr.includes('"started"')
      daemons.push(await createDaemon({ name, args, isReady }))
    }
  })
  afterAll(async () => {
    for (const daemon of daemons) daemon.signal('SIGCONT')
    await Promise.all(daemons.map((daemon) => daemon.stop()))
    await server.stop()
    await rm(dir, { recursive: true, force: true })
  })

  const readLease = async () => (await server.call('GET', LEASE)).json.spec ?? {}
  /** Waits until the lease has a holder other than `previousHolder`, and returns the new one. */
  async function waitForHolder(previousHolder?: string): Promise<{ holder: string; transitions: number }> {
    for (;;) {
      const { holderIdentity: holder, leaseTransitions: transitions } = await readLease()
      if (holder && holder !== previousHolder) return { holder, transitions }
      await pause(50) // polls until the test times out
    }
  }
  /** Waits until a process has logged that it leads with this identity, and returns the process. */
  async function leaderOf(holder: string): Promise<Daemon> {
    for (;;) {
      const leader = daemons.find((daemon) => daemon.log().includes(`"identity":"${holder}"`))
      if (leader) return leader
      await pause(50) // the log arrives after the lease
    }
  }

  it('SYS-8 hand over leadership when the leader stops, is killed, or freezes, and a leader that thaws gives up its old term', async () => {
    await Promise.all(daemons.map((daemon) => daemon.start()))
    const firstTerm = await waitForHolder()
    const firstLeader = await leaderOf(firstTerm.holder)
    await firstLeader.stop()
    expect(firstLeader.log()).not.toContain('cannot release the lease')
    const secondTerm = await waitForHolder(firstTerm.holder)
    expect(secondTerm.transitions).toBeGreaterThan(firstTerm.transitions)

    await firstLeader.start()
    const secondLeader = await leaderOf(secondTerm.holder)
    await secondLeader.kill()
    const thirdTerm = await waitForHolder(secondTerm.holder)
    expect(thirdTerm.transitions).toBeGreaterThan(secondTerm.transitions)

    await secondLeader.start()
    const frozenDaemon = await leaderOf(thirdTerm.holder)
    frozenDaemon.signal('SIGSTOP')
    const fourthTerm = await waitForHolder(thirdTerm.holder)
    frozenDaemon.signal('SIGCONT')
    while (!frozenDaemon.log().includes('leadership lost')) await pause(50)
    const { holderIdentity, leaseTransitions } = await readLease()
    // A thawed leader may lead again only in a later term.
    if (holderIdentity === thirdTerm.holder) expect(leaseTransitions).toBeGreaterThan(fourthTerm.transitions)
    else expect(leaseTransitions).toBeGreaterThanOrEqual(fourthTerm.transitions)
  }, 120_000)
})
