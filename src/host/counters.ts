// Reads IO totals and rates of devices from /sys/block/*/stat. The kernel keeps the counters of a loop device when another
// volume is attached to it, so each volume is counted from a baseline.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Counters, IoRates, IoTotals } from './host.ts'

export interface CountersDeps {
  readonly clock: Clock
  readonly sysBlock?: string
}

/** The minimum interval between two samples. Rates over shorter intervals would be mostly noise. */
const RATE_INTERVAL_MS_MIN = 1_000

interface TrackedDevice {
  readonly baseline: IoTotals
  lastSample: { readonly timeMs: number; readonly kernelTotals: IoTotals }
  rates: IoRates
}

export function createCounters({ clock, sysBlock = '/sys/block' }: CountersDeps): Counters {
  const trackedDevices = new Map<string, TrackedDevice>()

  async function readKernelTotals(device: string): Promise<IoTotals | undefined> {
    try {
      return parseDeviceStat(await readFile(`${sysBlock}/${basename(device)}/stat`, 'utf8'))
    } catch (error) {
      if (['ENOENT', 'ENODEV', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
      throw error
    }
  }

  const createTrackedDevice = (kernelTotals: IoTotals): TrackedDevice => ({
    baseline: kernelTotals,
    lastSample: { timeMs: clock.monotonicMs(), kernelTotals },
    rates: { readIops: 0, writeIops: 0, readBps: 0, writeBps: 0 },
  })

  return {
    async begin(device) {
      const kernelTotals = await readKernelTotals(device)
      if (kernelTotals) trackedDevices.set(device, createTrackedDevice(kernelTotals))
    },

    async read(device) {
      const kernelTotals = await readKernelTotals(device)
      if (!kernelTotals) {
        trackedDevices.delete(device)
        return undefined
      }
      let trackedDevice = trackedDevices.get(device)
      // Counters that have decreased belong to a new device with the same number.
      if (
        !trackedDevice ||
        kernelTotals.reads < trackedDevice.lastSample.kernelTotals.reads ||
        kernelTotals.writes < trackedDevice.lastSample.kernelTotals.writes
      ) {
        trackedDevice = createTrackedDevice(kernelTotals)
        trackedDevices.set(device, trackedDevice)
      }
      const timeMs = clock.monotonicMs()
      const elapsedMs = timeMs - trackedDevice.lastSample.timeMs
      if (elapsedMs >= RATE_INTERVAL_MS_MIN) {
        trackedDevice.rates = ratesOf(subtract(kernelTotals, trackedDevice.lastSample.kernelTotals), elapsedMs)
        trackedDevice.lastSample = { timeMs, kernelTotals }
      }
      return { totals: subtract(kernelTotals, trackedDevice.baseline), rates: trackedDevice.rates }
    },

    end(device) {
      trackedDevices.delete(device)
    },
  }
}

const SECTOR_BYTES = 512 // independent of the device's sector size

/** Parses the fields: reads, merged, sectors read, ms, writes, merged, sectors written. Others are ignored. */
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

const subtract = (newTotals: IoTotals, oldTotals: IoTotals): IoTotals => ({
  reads: newTotals.reads - oldTotals.reads,
  readBytes: newTotals.readBytes - oldTotals.readBytes,
  writes: newTotals.writes - oldTotals.writes,
  writtenBytes: newTotals.writtenBytes - oldTotals.writtenBytes,
})

function ratesOf(totals: IoTotals, elapsedMs: number): IoRates {
  const perSecond = (count: number) => (count * 1_000) / elapsedMs
  return {
    readIops: perSecond(totals.reads),
    writeIops: perSecond(totals.writes),
    readBps: perSecond(totals.readBytes),
    writeBps: perSecond(totals.writtenBytes),
  }
}
