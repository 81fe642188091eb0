import { describe, expect, it } from 'vitest'
import { readFlags } from './flags.ts'

const read = (line: string) => readFlags(line.split(' ').filter(Boolean), { cores: 2 })

describe('flags of npm run sim', () => {
  it('select one seed or plan, or many seeds by number or time', () => {
    expect(read('--seed 7 --shrink')).toMatchObject({ do: 'one', target: { seed: 7 }, shrink: true, all: false })
    expect(read('--plan a.json --all')).toMatchObject({ do: 'one', target: { file: 'a.json' }, all: true })
    expect(read('')).toMatchObject({ do: 'many', until: { minutes: 1 }, from: undefined, workers: 2 })
    expect(read('--minutes 0.5 --from 3')).toMatchObject({ do: 'many', until: { minutes: 0.5 }, from: 3 })
    expect(read('--seeds 5000 --from 1 --twice --workers 4 --operations 300')).toMatchObject({
      do: 'many',
      until: { seeds: 5_000 },
      from: 1,
      runsTwice: true,
      workers: 4,
      plan: { operations: 300 },
    })
    expect(read('--seed 7 --workload quota --targeted-faults 12')).toMatchObject({
      plan: { workload: 'quota', targetedFaults: 12 },
    })
    expect(read('--seed 7 --answers stock')).toMatchObject({ plan: { answers: 'stock' } })
    expect(read('--help --seed 1')).toEqual({ do: 'help' })
  })

  it.each([
    ['--sed 7', "Unknown option '--sed'. `npm run sim -- --help` lists the flags. Flags follow a lone `--`."],
    ['7', "Unexpected argument '7'. `npm run sim -- --help` lists"],
    ['--seed', "Option '--seed <value>' argument missing. `npm run sim -- --help`"],
    ['--seed x', '--seed takes a whole number from 0 to 4294967295, not "x". For example: --seed 1'],
    ['--seed 1.5', '--seed takes a whole number from 0 to 4294967295, not "1.5".'],
    ['--seed -1', '--seed takes a whole number from 0 to 4294967295, not "-1".'],
    ['--minutes 0', '--minutes takes a number from 0.01 to 10080, not "0".'],
    ['--workers 0', '--workers takes a whole number from 1 to 256, not "0".'],
    [
      '--seed 1 --plan a',
      '--seed and --plan exclude each other. Each of them selects the plan of the run. Omit one of them.',
    ],
    ['--seeds 1 --minutes 1', '--minutes and --seeds exclude each other.'],
    [
      '--plan a --faults 1',
      '--plan and --faults exclude each other. A saved plan already contains its steps and setup. Omit one of them.',
    ],
    [
      '--seed 1 --from 2',
      '--from applies to many runs, but --seed and --plan select one. Omit it, or omit --seed and --plan.',
    ],
    ['--shrink', '--shrink applies to one run. Add --seed N or --plan FILE.'],
    ['--seed 1 --description it', '--description applies only with --save. Add --save'],
    ['--answers odd', '--answers takes "stock", not "odd".'],
    [
      '--plan a --answers stock',
      '--plan and --answers exclude each other. A saved plan already contains its steps and setup.',
    ],
    ['--workload nothing', 'There is no workload "nothing". Known workloads: mixed, provisioning'],
  ])('reject %s with advice', (line, message) => {
    expect(() => read(line)).toThrow(message)
  })
})
