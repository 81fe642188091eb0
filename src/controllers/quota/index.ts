// The public names of quota.
export { createQuotaMetrics, type QuotaMetrics } from './metrics.ts'
export { createQuotaController, type QuotaControllerOptions } from './quota-controller.ts'
