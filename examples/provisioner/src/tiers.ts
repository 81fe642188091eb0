// Volumes as directories on one of two disks, "fast" and "slow". A class may fix the tier by a parameter; where it
// does not, a claim may choose it by its selector. Each tier has a budget of bytes, kept in a small file per volume.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  defineProvisioner,
  InfeasibleError,
  NotCreatedError,
  type ProvisionedVolume,
  parameter,
} from 'stowage/provisioner'

export const TIERS = ['fast', 'slow'] as const
export type Tier = (typeof TIERS)[number]

export interface Disk {
  readonly root: string
  /** All volumes of the tier together. */
  readonly budgetBytes: bigint
}

const TIER_LABEL = 'example.com/tier'

export function tiersProvisioner(disks: Readonly<Record<Tier, Disk>>) {
  const inTurn = takingTurns()

  return defineProvisioner({
    name: 'example.com/tiers',
    parameters: {
      tier: parameter.choice(TIERS, { doc: 'which disk the volumes are on; left out, the claim may choose' }),
      reserve: parameter.bytes({ doc: 'bytes of the budget that stay free', default: 0n }),
    },
    labels: { [TIER_LABEL]: TIERS },
    accessModes: ['ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'],

    provision: ({ volumeName, sizeBytes, parameters, labels }) =>
      inTurn(async () => {
        // First: an earlier try may have made it by another class of the same name. The name decides, not the parameters.
        const made = await madeBefore(volumeName)
        if (made) return finished(made.tier, volumeName, made.sizeBytes)
        const accepted = labels[TIER_LABEL]
        const tier = parameters.tier ?? accepted[0]
        if (tier === undefined || !accepted.includes(tier)) {
          throw new InfeasibleError(
            `The class makes ${tier} volumes, and the claim's selector accepts ${accepted.join(', ')} only.`,
          )
        }
        const disk = disks[tier]
        const usedBytes = [...(await sizesOn(disk)).values()].reduce((sum, bytes) => sum + bytes, 0n)
        const freeBytes = disk.budgetBytes - usedBytes - parameters.reserve
        if (sizeBytes > freeBytes) {
          throw new NotCreatedError(
            `The ${tier} disk has ${freeBytes} bytes left for this class, and the claim asks for ${sizeBytes}.`,
          )
        }
        await writeWhole(sizeFile(disk, volumeName), `${sizeBytes}`)
        return finished(tier, volumeName, sizeBytes)
      }),

    find: ({ volumeName }) =>
      inTurn(async () => {
        const made = await madeBefore(volumeName)
        return made && volumeOn(made.tier, volumeName, made.sizeBytes)
      }),

    async delete({ name, source }) {
      const disk = diskOf(name, source.hostPath?.path)
      if (!disk) throw new Error(`${source.hostPath?.path} is no volume of mine.`)
      // The size goes last: until then the volume counts, and the next try finds it.
      await rm(join(disk.root, name), { recursive: true, force: true })
      await inTurn(() => rm(sizeFile(disk, name), { force: true }))
    },

    owns: ({ name, source }) => diskOf(name, source.hostPath?.path) !== undefined,
  })

  async function madeBefore(volumeName: string): Promise<{ tier: Tier; sizeBytes: bigint } | undefined> {
    for (const tier of TIERS) {
      const sizeBytes = (await sizesOn(disks[tier])).get(volumeName)
      if (sizeBytes !== undefined) return { tier, sizeBytes }
    }
    return undefined
  }

  async function finished(tier: Tier, volumeName: string, sizeBytes: bigint): Promise<ProvisionedVolume> {
    await mkdir(join(disks[tier].root, volumeName), { recursive: true })
    return volumeOn(tier, volumeName, sizeBytes)
  }

  function volumeOn(tier: Tier, volumeName: string, sizeBytes: bigint): ProvisionedVolume {
    const path = join(disks[tier].root, volumeName)
    return { sizeBytes, source: { hostPath: { path, type: 'Directory' } }, labels: { [TIER_LABEL]: tier } }
  }

  /** Compared letter by letter: no path in a volume object leads anywhere but to its own directory. */
  function diskOf(name: string, path: string | undefined): Disk | undefined {
    if (!/^[a-z0-9][-a-z0-9]*$/.test(name)) return undefined
    return TIERS.map((tier) => disks[tier]).find(({ root }) => path === join(root, name))
  }
}

const sizeFile = ({ root }: Disk, volumeName: string): string => join(root, `.${volumeName}.size`)

/** By volume. What a crash left half written is removed: only one at a time gets here. */
async function sizesOn({ root }: Disk): Promise<Map<string, bigint>> {
  await mkdir(root, { recursive: true })
  const sizes = new Map<string, bigint>()
  for (const file of await readdir(root)) {
    const [, volumeName, isHalf] = /^\.(.+)\.size(\.tmp)?$/.exec(file) ?? []
    if (isHalf) await rm(join(root, file), { force: true })
    else if (volumeName) sizes.set(volumeName, BigInt(await readFile(join(root, file), 'utf8')))
  }
  return sizes
}

/** A crash leaves the file as it is to be, or none. */
async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text, { flush: true })
  await rename(`${path}.tmp`, path)
}

/** Calls run at once; two must not count the same free bytes. */
function takingTurns() {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(run: () => Promise<T>): Promise<T> => {
    const mine = last.then(run, run)
    last = mine
    return mine
  }
}
