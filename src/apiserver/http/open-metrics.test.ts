import { describe, expect, it } from 'vitest'
import { acceptsOpenMetrics, toOpenMetrics } from './open-metrics.ts'

describe('toOpenMetrics', () => {
  it('names counter families without their suffix, and ends with EOF', () => {
    const text = '# HELP a_total A.\n# TYPE a_total counter\na_total{x="1"} 2\n\n# HELP b B.\n# TYPE b counter\nb 1\n'
    expect(toOpenMetrics(text, () => undefined)).toBe(
      '# HELP a A.\n# TYPE a counter\na_total{x="1"} 2\n# HELP b B.\n# TYPE b unknown\nb 1\n# EOF\n',
    )
  })

  it('adds exemplars to buckets, with escaped labels of at most 128 characters', () => {
    const text = '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1",x="a"} 2\nh_sum{x="a"} 2\n'
    const exemplarOf = ({ name, labels }: { name: string; labels: Readonly<Record<string, string>> }) =>
      name === 'h_bucket' && labels.le === '1' && labels.x === 'a'
        ? { labels: { claim: `"${'c'.repeat(200)}` }, value: 0.5, atMs: 1_500 }
        : undefined
    expect(toOpenMetrics(text, exemplarOf)).toBe(
      `# HELP h H.\n# TYPE h histogram\nh_bucket{le="1",x="a"} 2 # {claim="\\"${'c'.repeat(122)}"} 0.5 1.500\nh_sum{x="a"} 2\n# EOF\n`,
    )
  })
})

describe('acceptsOpenMetrics', () => {
  it.each<[string | undefined, boolean]>([
    ['application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3', true],
    ['text/plain, application/openmetrics-text', true],
    ['application/openmetrics-text;q=0', false],
    ['text/plain', false],
    ['*/*', false],
    [undefined, false],
  ])('for %s returns %s', (accept, isAccepted) => {
    expect(acceptsOpenMetrics(accept)).toBe(isAccepted)
  })
})
