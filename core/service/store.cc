#include "service/store.h"

#include <utility>

#include "base/error.h"

namespace tengen::service {
namespace {

using replay::Engine;

class LocalWriter final : public WriterPort {
 public:
  LocalWriter(Store* store, const std::string& name, uint32_t pool) : store_(store) {
    store->change([&](Engine& engine) {
      session_ = engine.begin_session();
      opened_ = engine.open_writer(session_, name, pool);
    });
  }
  ~LocalWriter() override {
    store_->change([&](Engine& engine) { engine.end_session(session_); });
  }

  uint64_t next_sequence() const override { return opened_.next_sequence; }

  std::optional<uint32_t> begin_chunk(Deadline deadline) override {
    std::optional<uint32_t> slot;
    store_->change_when(deadline, [&](Engine& engine) {
      slot = engine.grant(opened_.writer);
      if (!slot) return Progress::kNone;
      engine.append(opened_.writer, *slot);
      return Progress::kDone;
    });
    return slot;
  }

  bool insert(const InsertRun& run, Deadline deadline) override {
    uint32_t done = 0;
    table_ = run.table;
    return store_->change_when(
        deadline, [&](Engine& engine) { return insert_run(engine, opened_.writer, run, &done); });
  }

  void release_before(uint64_t first) override {
    store_->change([&](Engine& engine) { engine.release_before(opened_.writer, first); });
  }

  bool flush(Deadline) override { return true; }

  std::string waits() override {
    return store_->read([&](const Engine& engine) { return engine.insert_waits(table_); });
  }

 private:
  Store* const store_;
  replay::SessionId session_ = 0;
  Engine::OpenedWriter opened_{};
  uint32_t table_ = 0;  // of the last insert
};

class LocalSampler final : public SamplerPort {
 public:
  LocalSampler(Store* store, uint32_t table, uint32_t num_samples)
      : store_(store), table_(table), num_samples_(num_samples) {
    session_ = store->change([](Engine& engine) { return engine.begin_session(); });
  }
  ~LocalSampler() override {
    store_->change([&](Engine& engine) { engine.end_session(session_); });
  }

  bool next(Deadline deadline, Delivery* delivery) override {
    if (!store_->change_when(deadline, [&](Engine& engine) {
          const bool drawn = engine.sample(session_, table_, num_samples_, &loan_);
          return drawn ? Progress::kDone : Progress::kNone;
        })) {
      return false;
    }
    deliver(loan_, delivery);
    return true;
  }

  void ack(uint64_t lease, std::span<const double> priorities) override {
    store_->change([&](Engine& engine) { engine.ack(session_, lease, priorities); });
  }

  void give_back(uint64_t lease) override {
    store_->change([&](Engine& engine) { engine.give_back(session_, lease); });
  }

  std::string waits() override {
    return store_->read(
        [&](const Engine& engine) { return engine.sample_waits(table_, num_samples_); });
  }

 private:
  Store* const store_;
  const uint32_t table_;
  const uint32_t num_samples_;
  replay::SessionId session_ = 0;
  replay::Loan loan_;
};

}  // namespace

Progress insert_run(Engine& engine, uint32_t writer, const InsertRun& run, uint32_t* done) {
  const uint32_t before = *done;
  for (; *done < run.count; ++*done) {
    const uint32_t i = *done;
    const double priority = run.priorities[run.priorities.size() == 1 ? 0 : i];
    const uint64_t first = run.first + uint64_t{i} * run.stride;
    const auto result = engine.insert(
        writer, {run.table, run.sequence + i, first, run.num_steps, priority, run.version});
    if (result == replay::InsertResult::kBlocked) {
      return *done > before ? Progress::kSome : Progress::kNone;
    }
  }
  return Progress::kDone;
}

void deliver(const replay::Loan& loan, Delivery* delivery) {
  delivery->lease = loan.lease;
  delivery->table_size = loan.table_size;
  delivery->keys.clear();
  delivery->probabilities.clear();
  for (const replay::Sample& sample : loan.samples) {
    delivery->keys.push_back(sample.key);
    delivery->probabilities.push_back(sample.probability);
  }
  delivery->pieces.assign(loan.pieces.begin(), loan.pieces.end());
}

void Store::close() {
  const std::scoped_lock lock(mutex_);
  is_closed_ = true;
  const Changed changed(this);
}

bool Store::is_closed() {
  const std::scoped_lock lock(mutex_);
  return is_closed_;
}

void Store::set_listener(std::function<void()> listener) {
  const std::scoped_lock lock(mutex_);
  listener_ = std::move(listener);
}

void Store::check_open() const {
  if (is_closed_) throw Error("store (" + directory_ + ") is closed; open it again");
}

std::unique_ptr<WriterPort> Store::open_writer(const std::string& name, uint32_t pool) {
  return std::make_unique<LocalWriter>(this, name, pool);
}

std::unique_ptr<SamplerPort> Store::open_sampler(uint32_t table, uint32_t num_samples) {
  return std::make_unique<LocalSampler>(this, table, num_samples);
}

SlabMap Store::slab_map(uint32_t pool) {
  return read([&](const Engine& engine) {
    const replay::Pool& of = engine.pool(pool);
    return SlabMap(of.slots_per_slab(), of.schema().chunk_bytes(), [this, pool](uint32_t index) {
      return read([&](const Engine& now) { return now.pool(pool).slab(index); });
    });
  });
}

}  // namespace tengen::service
