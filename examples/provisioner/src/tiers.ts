// Volumes as directories on one of two disks, "fast" and "slow". A class may fix the tier by a parameter; where it
// does not, a claim may choose it by its selector. Each tier has a budget of bytes, kept in a small file per volume.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineProvisioner, Infeasible, type MadeVolume, NothingMade, parameter } from 'stowage/provisioner'

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

    async provision({ volumeName, sizeBytes, parameters, labels }) {
      const accepted = labels[TIER_LABEL]
      const tier = parameters.tier ?? accepted[0]
      if (tier === undefined || !accepted.includes(tier)) {
        throw new Infeasible(
          `The class makes ${tier} volumes, and the claim's selector accepts ${accepted.join(', ')} only.`,
        )
      }
      const disk = disks[tier]
      await inTurn(tier, async () => {
        const sizes = await sizesOn(disk)
        if (sizes.has(volumeName)) return // an earlier try got this far
        const usedBytes = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0n)
        const freeBytes = disk.budgetBytes - usedBytes - parameters.reserve
        if (sizeBytes > freeBytes) {
          throw new NothingMade(
            `The ${tier} disk has ${freeBytes} bytes left for this class, and the claim asks for ${sizeBytes}.`,
          )
        }
        await writeWhole(sizeFile(disk, volumeName), `${sizeBytes}`)
      })
      await mkdir(join(disk.root, volumeName), { recursive: true })
      return volumeOn(tier, volumeName, sizeBytes)
    },

    async find({ volumeName, sizeBytes }) {
      for (const tier of TIERS) {
        if ((await sizesOn(disks[tier])).has(volumeName)) return volumeOn(tier, volumeName, sizeBytes)
      }
      return undefined
    },

    async delete({ name, source }) {
      const disk = diskOf(name, source.hostPath?.path)
      if (!disk) throw new Error(`${source.hostPath?.path} is no volume of mine.`)
      // The size goes last: until then the volume counts, and the next try finds it.
      await rm(join(disk.root, name), { recursive: true, force: true })
      await rm(sizeFile(disk, name), { force: true })
    },

    owns: ({ name, source }) => diskOf(name, source.hostPath?.path) !== undefined,
  })

  function volumeOn(tier: Tier, volumeName: string, sizeBytes: bigint): MadeVolume {
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

async function sizesOn({ root }: Disk): Promise<Map<string, bigint>> {
  await mkdir(root, { recursive: true })
  const sizes = new Map<string, bigint>()
  for (const file of await readdir(root)) {
    const volumeName = /^\.(.+)\.size$/.exec(file)?.[1]
    if (volumeName) sizes.set(volumeName, BigInt(await readFile(join(root, file), 'utf8').catch(() => '0')))
  }
  return sizes
}

/** A crash leaves the file as it is to be, or none. */
async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text, { flush: true })
  await rename(`${path}.tmp`, path)
}

/** Volumes are made at once; two must not count the same free bytes. */
function takingTurns() {
  const last = new Map<string, Promise<unknown>>()
  return <T>(queue: string, run: () => Promise<T>): Promise<T> => {
    const mine = (last.get(queue) ?? Promise.resolve()).then(run, run)
    last.set(queue, mine)
    return mine
  }
}
