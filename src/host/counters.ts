// IO totals and rates of a device from /sys/block/*/stat. The kernel's counters belong to the loop number and continue
// across volumes, so each volume is counted from a baseline.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Counters, IoRates, IoTotals } from './host.ts'

export interface CountersDeps {
  readonly clock: Clock
  readonly sysBlock?: string
}

/** Readers within this time get the same rates; over shorter intervals rates would be mostly noise. */
const RATE_INTERVAL_MS_MIN = 1_000

interface Tracked {
  readonly baseline: IoTotals
  lastSample: { readonly atMs: number; readonly raw: IoTotals }
  rates: IoRates
}

export function createCounters({ clock, sysBlock = '/sys/block' }: CountersDeps): Counters {
  const watched = new Map<string, Tracked>() // one per device, until forget()

  async function readRaw(device: string): Promise<IoTotals | undefined> {
    try {
      return parseDeviceStat(await readFile(`${sysBlock}/${basename(device)}/stat`, 'utf8'))
    } catch (error) {
      if (['ENOENT', 'ENODEV', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
      throw error
    }
  }

  const startAt = (raw: IoTotals): Tracked => ({
    baseline: raw,
    lastSample: { atMs: clock.monotonicMs(), raw },
    rates: { readIops: 0, writeIops: 0, readBps: 0, writeBps: 0 },
  })

  return {
    async begin(device) {
      const raw = await readRaw(device)
      if (raw) watched.set(device, startAt(raw))
    },

    async read(device) {
      const raw = await readRaw(device)
      if (!raw) {
        watched.delete(device)
        return undefined
      }
      let known = watched.get(device)
      // Counters that went back belong to a new device with the same number.
      if (!known || raw.reads < known.lastSample.raw.reads || raw.writes < known.lastSample.raw.writes) {
        known = startAt(raw)
        watched.set(device, known)
      }
      const atMs = clock.monotonicMs()
      const elapsedMs = atMs - known.lastSample.atMs
      if (elapsedMs >= RATE_INTERVAL_MS_MIN) {
        known.rates = ratesOf(difference(raw, known.lastSample.raw), elapsedMs)
        known.lastSample = { atMs, raw }
      }
      return { totals: difference(raw, known.baseline), rates: known.rates }
    },

    forget(device) {
      watched.delete(device)
    },
  }
}

const SECTOR_BYTES = 512 // independent of the device's sector size

/** Fields: reads, merged, sectors read, ms, writes, merged, sectors written, and others that are not used here. */
export function parseDeviceStat(text: string): IoTotals {
  const numbers = text.trim().split(/\s+/).map(Number)
  const [reads, , sectorsRead, , writes, , sectorsWritten] = numbers
  if (sectorsWritten === undefined || numbers.some(Number.isNaN)) {
    throw new Error(`Cannot parse device counters: "${text.trim()}"`)
  }
  return {
    reads: reads!,
    readBytes: sectorsRead! * SECTOR_BYTES,
    writes: writes!,
    writtenBytes: sectorsWritten * SECTOR_BYTES,
  }
}

const difference = (now: IoTotals, then: IoTotals): IoTotals => ({
  reads: now.reads - then.reads,
  readBytes: now.readBytes - then.readBytes,
  writes: now.writes - then.writes,
  writtenBytes: now.writtenBytes - then.writtenBytes,
})

function ratesOf(done: IoTotals, elapsedMs: number): IoRates {
  const perSecond = (count: number) => (count * 1_000) / elapsedMs
  return {
    readIops: perSecond(done.reads),
    writeIops: perSecond(done.writes),
    readBps: perSecond(done.readBytes),
    writeBps: perSecond(done.writtenBytes),
  }
}
