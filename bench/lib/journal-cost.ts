// Starts the server of journal-role.ts, whose journal of volumes can be switched off and on, and runs its measurements: rounds,
// replays and profiles.
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type CpuProfile, foldProfiles } from './flame-graph.ts'
import type { ReplayTimes } from './journal-replay.ts'
import type { JournalJob, RoundUsage } from './journal-role.ts'
import {
  type AllocationProfile,
  allocationsOf,
  isOfCommit,
  isOfJournal,
  type ProfileShares,
  timeOf,
} from './journal-share.ts'
import { createFrameNames } from './profiles.ts'
import { type Role, startRole } from './role.ts'
import { NPM_START_ENV, NPM_START_FLAGS } from './server-process.ts'

export interface JournalServer {
  readonly port: number
  readonly dataDir: string
  /** Runs a round and returns what the server has used. */
  round(hasJournal: boolean, run: () => Promise<void>): Promise<RoundUsage>
  /** Records the transactions of a run and replays them. */
  replay(run: () => Promise<void>, rounds: number): Promise<ReplayTimes>
  /** Records the CPU time of the first run, and the allocations of the second one. */
  profile(timed: () => Promise<void>, allocated: () => Promise<void>): Promise<ProfileShares>
  stop(): Promise<void>
}

export async function startJournalServer(options: {
  readonly dir: string
  readonly driverSocket: string
}): Promise<JournalServer> {
  const { dir, driverSocket } = options
  const dataDir = join(dir, 'data')
  await mkdir(dir, { recursive: true })
  const nodeFlags = [...NPM_START_FLAGS, '--expose-gc']
  // biome-ignore lint/suspicious/noExplicitAny: the type of a result depends on its job, which a role cannot express
  const role: Role<JournalJob, any> = startRole('journal', { nodeFlags, env: NPM_START_ENV })
  const port: number = await role.run({ do: 'start', dataDir, driverSocket })
  return {
    port,
    dataDir,
    async round(hasJournal, run) {
      await role.run({ do: 'beginRound', hasJournal })
      await run()
      return role.run({ do: 'endRound' })
    },
    async replay(run, rounds) {
      await role.run({ do: 'record' })
      await run()
      return role.run({ do: 'replay', dir: join(dir, 'replay'), rounds })
    },
    async profile(timed, allocated) {
      const cpuFile = join(dir, 'cpu.json')
      const allocationFile = join(dir, 'allocations.json')
      await role.run({ do: 'startProfile' })
      await timed()
      await role.run({ do: 'writeProfile', file: cpuFile })
      await role.run({ do: 'startAllocationProfile' })
      await allocated()
      await role.run({ do: 'writeAllocationProfile', file: allocationFile })
      return sharesIn(cpuFile, allocationFile)
    },
    async stop() {
      await role.run({ do: 'stop' })
      role.stop()
    },
  }
}

async function sharesIn(cpuFile: string, allocationFile: string): Promise<ProfileShares> {
  const profile: CpuProfile = JSON.parse(await readFile(cpuFile, 'utf8'))
  const allocationProfile: AllocationProfile = JSON.parse(await readFile(allocationFile, 'utf8'))
  const nameOf = createFrameNames()
  await nameOf.load([profile])
  const flame = foldProfiles([profile], nameOf)
  const collection = timeOf(flame, (name) => name === '(garbage collector)')
  const allocations = allocationsOf(allocationProfile, nameOf, isOfJournal)
  return {
    functions: timeOf(flame, isOfJournal) / (flame.total - collection),
    collection: collection / flame.total,
    commits: timeOf(flame, isOfCommit, isOfJournal) / flame.total,
    allocations: allocations.matching / allocations.total,
  }
}
